# Man pages under build/man: one per public function and type and ferry_errors(3), made from the
# headers' comments; ferry(1) and ferry(7).
file(GLOB public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/ferry/*.h)
configure_file(${PROJECT_SOURCE_DIR}/docs/man/ferry.1.in
  ${PROJECT_BINARY_DIR}/man/man1/ferry.1 @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/docs/man/ferry.7.in
  ${PROJECT_BINARY_DIR}/man/man7/ferry.7 @ONLY)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/obj/man.stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${PROJECT_BINARY_DIR}/man/man3
  COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man/man3
  COMMAND awk -f ${PROJECT_SOURCE_DIR}/tools/man.awk -v out=${PROJECT_BINARY_DIR}/man/man3
          -v version=${PROJECT_VERSION} ${public_headers}
  COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/obj/man.stamp
  DEPENDS ${public_headers} ${PROJECT_SOURCE_DIR}/tools/man.awk
  COMMENT "Man pages from the headers" VERBATIM)
add_custom_target(man ALL DEPENDS ${PROJECT_BINARY_DIR}/obj/man.stamp)
