# Shared by the tests of all folders.
enable_testing() # COST, in seconds or so, has the longest begin first

# FERRY_THREADS of programs that are run with ranks as processes and as threads of one process.
# Programs that make jobs differ in both ways (ferry_job_ways); others are above that (ferry_ways);
# some programs are run one way (ferry_way). Sanitized processes cost much, so AddressSanitizer runs
# the programs above as threads. ThreadSanitizer sees no process but its own. It sees what ranks do
# to each other, and what a rank's helper does, if ranks are threads. So it runs those alone, and
# nothing in which there is one thread.
set(ferry_job_ways 0 1)
set(ferry_ways 0 1)
set(ferry_way 0)
set(ferry_threads_alone FALSE)
if(FERRY_SANITIZE STREQUAL "address")
  set(ferry_ways 1)
elseif(FERRY_SANITIZE STREQUAL "thread")
  set(ferry_job_ways 1)
  set(ferry_ways 1)
  set(ferry_way 1)
  set(ferry_threads_alone TRUE)
endif()

# A test that passes if its program ends with `status` and prints a line that matches `text`, an
# extended regular expression. The program is a target.
set(ferry_expect ${CMAKE_CURRENT_LIST_DIR}/../tests/expect.sh)
function(ferry_expect_test name status text program)
  add_test(NAME ${name}
    COMMAND sh ${ferry_expect} ${status} "${text}" $<TARGET_FILE:${program}> ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300)
endfunction()

# The same with the number of ranks: a program that must succeed, and one that must say something.
function(ferry_ranks_test name ranks)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300
    ENVIRONMENT "FERRY_RANKS=${ranks};FERRY_THREADS=${ferry_way}")
endfunction()

function(ferry_ranks_expect_test name ranks status text)
  ferry_expect_test(${name} ${status} "${text}" ${ARGN})
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "FERRY_RANKS=${ranks};FERRY_THREADS=${ferry_way}")
endfunction()

# A program in the simulator, once with each of `seeds` seeds, of which make test takes a third. A
# process that a sanitizer watches takes ten times as long, most of it to start. There a tenth of
# the seeds is taken. A simulated rank that dies, finds no memory or has lost work does not free
# what it holds: that is no leak.
function(ferry_swarm_leaks name)
  if("--all" IN_LIST ARGN OR "--out-of-memory" IN_LIST ARGN OR "--unreadable" IN_LIST ARGN)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT ASAN_OPTIONS=detect_leaks=0)
  endif()
endfunction()
set(ferry_swarm ${CMAKE_CURRENT_LIST_DIR}/../tests/sim/swarm.sh)
function(ferry_swarm_test name seeds)
  if(NOT FERRY_SANITIZE STREQUAL "")
    math(EXPR seeds "(${seeds} + 9) / 10")
  endif()
  add_test(NAME ${name}
    COMMAND sh ${ferry_swarm} $<TARGET_FILE:ferry_command> ${seeds} ${ARGN})
  set_tests_properties(${name} PROPERTIES TIMEOUT 900 COST 10)
  ferry_swarm_leaks(${name} ${ARGN})
endfunction()

# Seeds with which a program has failed, each as a test. A case is RANKS_SEED. TIMEOUT and
# ENVIRONMENT, if they are given, come first.
function(ferry_seed_tests name cases)
  cmake_parse_arguments(PARSE_ARGV 2 with "" "TIMEOUT;ENVIRONMENT" "")
  if(NOT with_TIMEOUT)
    set(with_TIMEOUT 300)
  endif()
  foreach(case ${cases})
    string(REPLACE "_" ";" at ${case})
    list(POP_FRONT at ranks seed)
    add_test(NAME ${name}_${case} COMMAND ferry_command swarm --seeds ${seed}..${seed} -n ${ranks}
      ${with_UNPARSED_ARGUMENTS})
    set_tests_properties(${name}_${case} PROPERTIES TIMEOUT ${with_TIMEOUT})
    ferry_swarm_leaks(${name}_${case} ${with_UNPARSED_ARGUMENTS})
    if(with_ENVIRONMENT)
      set_tests_properties(${name}_${case} PROPERTIES ENVIRONMENT "${with_ENVIRONMENT}")
    endif()
  endforeach()
endfunction()
