# One library per leaf of the tree. Includes are spelled from the root ("libcore/base/error.h"), and
# scripts/check-includes.sh compares each with the LIBS of its target: an arrow backwards fails.

add_library(hf_flags INTERFACE)
target_compile_options(hf_flags INTERFACE
    -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
    -ffp-contract=off          # bits are promised: a product and a sum are fused only where the code says fma
    $<$<BOOL:${HF_WERROR}>:-Werror>)
foreach(sanitizer IN LISTS HF_SANITIZE)
    target_compile_options(hf_flags INTERFACE -fsanitize=${sanitizer} -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
    target_link_options(hf_flags INTERFACE -fsanitize=${sanitizer})
endforeach()
if(HF_FUZZ)
    target_compile_options(hf_flags INTERFACE -fsanitize=fuzzer-no-link)  # the fuzzer sees coverage
endif()

# hf_library(NAME FILES a.cpp ... LIBS target ...): a leaf. Without FILES it is headers only.
function(hf_library name)
    cmake_parse_arguments(arg "" "" "FILES;LIBS" ${ARGN})
    if(NOT arg_FILES)
        add_library(${name} INTERFACE)
        target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR})
        target_link_libraries(${name} INTERFACE ${arg_LIBS})
        return()
    endif()
    add_library(${name} STATIC ${arg_FILES})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} PUBLIC ${arg_LIBS} PRIVATE hf_flags)
endfunction()
