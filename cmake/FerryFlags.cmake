# Language level, warnings and sanitizers for everything that is built here.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

add_compile_definitions(_GNU_SOURCE)
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
  -Wmissing-prototypes -Wvla)
# Off only for packagers whose compiler is newer than ours and warns of more.
option(FERRY_WERROR "Warnings are errors" ON)
if(FERRY_WERROR)
  add_compile_options(-Werror)
endif()

set(FERRY_SANITIZE "" CACHE STRING "Sanitizers: empty, address or thread")
if(FERRY_SANITIZE STREQUAL "address")
  # GCC takes more values for uninitialized than are, where these sanitizers are on.
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all
    -fno-omit-frame-pointer -Wno-maybe-uninitialized)
  # Descriptions of checks are 200,000 pointers. At a fixed address nobody relocates them when a
  # process starts.
  add_link_options(-fsanitize=address,undefined
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  # The shared runtime of one would have the other search its 6 MiB for pointers whenever a process
  # ends.
  include(CheckLinkerFlag)
  check_linker_flag(C "-fsanitize=undefined;-static-libubsan" FERRY_STATIC_LIBUBSAN)
  if(FERRY_STATIC_LIBUBSAN)
    add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-static-libubsan>)
  endif()
elseif(FERRY_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(NOT FERRY_SANITIZE STREQUAL "")
  message(FATAL_ERROR "FERRY_SANITIZE is \"${FERRY_SANITIZE}\"; expected empty, address or thread")
endif()
if(NOT FERRY_SANITIZE STREQUAL "")
  add_compile_definitions(FERRY_SANITIZED) # tests take smaller sizes
endif()
# Hundreds of programs with all of the library: gold takes two thirds of the time, mold half. gold
# does not look for the libraries that a shared library needs, as Open MPI's do.
include(CheckLinkerFlag)
foreach(linker mold gold)
  if(NOT FERRY_HAVE_${linker}) # it may have been installed since
    unset(FERRY_HAVE_${linker} CACHE)
  endif()
  check_linker_flag(C -fuse-ld=${linker} FERRY_HAVE_${linker})
  if(FERRY_HAVE_${linker})
    set(FERRY_LINKER -fuse-ld=${linker})
    add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${FERRY_LINKER}>
      $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-Wl,--allow-shlib-undefined>)
    break()
  endif()
endforeach()
