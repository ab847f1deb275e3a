# Where a package would put things: every tool with its man page and completions, the demo model, the
# example configuration, the docs.

# hf_install_text(TOOL FOLDER NAME arguments...): what a tool says about itself when asked so.
function(hf_install_text tool folder name)
    set(file ${PROJECT_BINARY_DIR}/share/${folder}/${name})
    add_custom_command(OUTPUT ${file} COMMAND ${tool} ${ARGN} > ${file} DEPENDS ${tool} VERBATIM)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/${folder})
    add_custom_target(text-${tool}-${name} ALL DEPENDS ${file})
    install(FILES ${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder})
endfunction()

get_property(tools DIRECTORY ${PROJECT_SOURCE_DIR}/tools PROPERTY BUILDSYSTEM_TARGETS)
foreach(tool IN LISTS tools)
    get_target_property(type ${tool} TYPE)
    if(type STREQUAL "EXECUTABLE")
        install(TARGETS ${tool})
        hf_install_text(${tool} man/man1 ${tool}.1 --man)
        hf_install_text(${tool} bash-completion/completions ${tool} --completion bash)
        hf_install_text(${tool} zsh/site-functions _${tool} --completion zsh)
    endif()
endforeach()

set(HF_DATA_DIR ${CMAKE_INSTALL_DATADIR}/hipfire)
install(DIRECTORY models/demo DESTINATION ${HF_DATA_DIR}/models
    PATTERN make EXCLUDE)      # how the model was trained is for those who have the sources
install(FILES hipfire.toml.example DESTINATION ${HF_DATA_DIR})
install(FILES README.md CONTRIBUTING.md LICENSE hipfire.toml.example DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES models/demo/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/models/demo)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
