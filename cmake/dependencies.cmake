# What the build needs from the system. A missing library is named with its package, all at once.

find_package(Threads REQUIRED)
find_package(PkgConfig QUIET)

set(HF_MISSING "")

# hf_need(TARGET name CMAKE package imported-target | PKGCONFIG module
#         DEBIAN pkg FEDORA pkg ARCH pkg): makes hf_dep_<name>, or adds to HF_MISSING.
function(hf_need name)
    cmake_parse_arguments(arg "" "PKGCONFIG;DEBIAN;FEDORA;ARCH" "CMAKE" ${ARGN})
    add_library(hf_dep_${name} INTERFACE)
    if(arg_CMAKE)
        list(POP_FRONT arg_CMAKE package)
        find_package(${package} QUIET)
        foreach(candidate IN LISTS arg_CMAKE)
            if(TARGET ${candidate})
                target_link_libraries(hf_dep_${name} INTERFACE ${candidate})
                return()
            endif()
        endforeach()
    elseif(PKG_CONFIG_FOUND)
        pkg_check_modules(hf_pc_${name} QUIET IMPORTED_TARGET ${arg_PKGCONFIG})
        if(hf_pc_${name}_FOUND)
            target_link_libraries(hf_dep_${name} INTERFACE PkgConfig::hf_pc_${name})
            return()
        endif()
    endif()
    set(HF_MISSING "${HF_MISSING}\n  ${name}: Debian ${arg_DEBIAN}, Fedora ${arg_FEDORA}, Arch ${arg_ARCH}"
        PARENT_SCOPE)
endfunction()

hf_need(fmt          CMAKE fmt fmt::fmt                               DEBIAN libfmt-dev          FEDORA fmt-devel          ARCH fmt)
hf_need(cli11        CMAKE CLI11 CLI11::CLI11                         DEBIAN libcli11-dev        FEDORA cli11-devel        ARCH cli11)
hf_need(tomlplusplus PKGCONFIG tomlplusplus                           DEBIAN libtomlplusplus-dev FEDORA tomlplusplus-devel ARCH tomlplusplus)
hf_need(simdjson     CMAKE simdjson simdjson::simdjson                DEBIAN libsimdjson-dev     FEDORA simdjson-devel     ARCH simdjson)
hf_need(json         CMAKE nlohmann_json nlohmann_json::nlohmann_json DEBIAN nlohmann-json3-dev  FEDORA json-devel         ARCH nlohmann-json)
hf_need(utf8proc     PKGCONFIG libutf8proc                            DEBIAN libutf8proc-dev     FEDORA utf8proc-devel     ARCH libutf8proc)
hf_need(libedit      PKGCONFIG libedit                                DEBIAN libedit-dev         FEDORA libedit-devel      ARCH libedit)
hf_need(hwloc        PKGCONFIG hwloc                                  DEBIAN libhwloc-dev        FEDORA hwloc-devel        ARCH hwloc)
if(HF_TESTS)
    hf_need(doctest  CMAKE doctest doctest::doctest                   DEBIAN doctest-dev         FEDORA doctest-devel      ARCH doctest)
    hf_need(pcre2    PKGCONFIG libpcre2-8                             DEBIAN libpcre2-dev        FEDORA pcre2-devel        ARCH pcre2)
endif()
if(HF_BENCHMARKS)
    # In two lines: scripts/install-packages.sh takes the others, and few people need this one.
    hf_need(benchmark CMAKE benchmark benchmark::benchmark
        DEBIAN libbenchmark-dev FEDORA google-benchmark-devel ARCH benchmark)
endif()

if(HF_MISSING)
    message(FATAL_ERROR "Libraries are missing; install these packages (pkg-config too):${HF_MISSING}\n"
        "On Debian and Ubuntu, 'sh scripts/install-packages.sh' installs them all.")
endif()
