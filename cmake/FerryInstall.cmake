# make install: headers, libraries, the command, a CMake package, a pkg-config file and man pages.
include(CMakePackageConfigHelpers)

# This is installed, and nothing else.
get_property(plugins GLOBAL PROPERTY FERRY_PLUGINS)
add_custom_target(installed DEPENDS ferry ferry_data ferry_static ferry_shmem
  ferry_shmem_static ferry_armci ferry_armci_static ferry_command man ${plugins})

install(TARGETS ferry ferry_data ferry_static ferry_shmem ferry_shmem_static ferry_armci
  ferry_armci_static EXPORT FerryTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ferry DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/compat/shmem.h ${PROJECT_SOURCE_DIR}/compat/shmem_generic.h
  ${PROJECT_SOURCE_DIR}/compat/shmem_ctx.h ${PROJECT_SOURCE_DIR}/compat/shmem_types.h
  ${PROJECT_SOURCE_DIR}/compat/armci.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ferry/compat)
if(TARGET ferry_command)
  install(TARGETS ferry_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Ferry)
install(EXPORT FerryTargets NAMESPACE Ferry:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/FerryConfig.cmake.in
  ${PROJECT_BINARY_DIR}/FerryConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/FerryConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/FerryConfig.cmake ${PROJECT_BINARY_DIR}/FerryConfigVersion.cmake
  DESTINATION ${package_dir})

foreach(library ferry ferry-data ferry-shmem ferry-armci)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${library}.pc.in
    ${PROJECT_BINARY_DIR}/${library}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

install(DIRECTORY ${PROJECT_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR})
# Pages that headers and man pages name as docs/..., and all that these pages lead to.
set(pages_dir ${CMAKE_INSTALL_DATAROOTDIR}/doc/ferry)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/LICENSE
  ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/CONTRIBUTING.md
  DESTINATION ${pages_dir})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${pages_dir} FILES_MATCHING
  PATTERN "*.md" PATTERN "*.csv" PATTERN "*.svg" PATTERN "*.png" PATTERN man EXCLUDE)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples ${PROJECT_SOURCE_DIR}/apps
  DESTINATION ${pages_dir} FILES_MATCHING PATTERN "*.c" PATTERN "*.h")

# libferry.a has the movers and cells too: what -lferry_data names may be empty.
install(CODE "execute_process(COMMAND \"${CMAKE_AR}\" crs
  \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libferry_data.a\"
  COMMAND_ERROR_IS_FATAL ANY)")
# Programs that are linked to libferry.a look for plug-ins where it was configured to be installed.
install(CODE "if(NOT CMAKE_INSTALL_PREFIX STREQUAL \"${CMAKE_INSTALL_PREFIX}\")
  message(STATUS \"libferry.a looks for plug-ins in ${CMAKE_INSTALL_FULL_LIBDIR}/ferry: configure \"
    \"with -DCMAKE_INSTALL_PREFIX=\${CMAKE_INSTALL_PREFIX}, or set FERRY_PLUGIN_PATH\")
endif()")
