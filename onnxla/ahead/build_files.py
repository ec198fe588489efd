"""What tells build systems of a library: a file for pkg-config, and one for CMake's `find_package(NAME CONFIG)`."""


def pkg_config(name: str) -> str:
    """`NAME.pc`; the folder may move as a whole."""
    return (
        f"prefix=${{pcfiledir}}\n\nName: {name}\nDescription: a model compiled by onnxla\nVersion: 1\n"
        f"Cflags: -I${{prefix}}\nLibs: -L${{prefix}} -l{name} -lm -lpthread\n"
    )


def cmake_config(name: str) -> str:
    """`NAME-config.cmake`: the target `NAME::NAME` is the static library with its header and what it links to."""
    return f"""include(CMakeFindDependencyMacro)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_dependency(Threads)
if(NOT TARGET {name}::{name})
  add_library({name}::{name} STATIC IMPORTED)
  set_target_properties({name}::{name} PROPERTIES
    IMPORTED_LOCATION "${{CMAKE_CURRENT_LIST_DIR}}/lib{name}.a"
    INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}"
    INTERFACE_LINK_LIBRARIES "m;Threads::Threads")
endif()
"""
