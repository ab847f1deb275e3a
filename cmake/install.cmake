# Where a package would put things: every tool, the demo model, the example configuration, the docs.

get_property(tools DIRECTORY ${PROJECT_SOURCE_DIR}/tools PROPERTY BUILDSYSTEM_TARGETS)
foreach(tool IN LISTS tools)
    get_target_property(type ${tool} TYPE)
    if(type STREQUAL "EXECUTABLE")
        install(TARGETS ${tool})
    endif()
endforeach()

set(HF_DATA_DIR ${CMAKE_INSTALL_DATADIR}/hipfire)
install(DIRECTORY models/demo DESTINATION ${HF_DATA_DIR}/models
    PATTERN make EXCLUDE)      # how the model was trained is for those who have the sources
install(FILES hipfire.toml.example DESTINATION ${HF_DATA_DIR})
install(FILES README.md CONTRIBUTING.md LICENSE hipfire.toml.example DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES models/demo/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/models/demo)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
