# What tests of all folders share.
enable_testing()

# FERRY_THREADS of programs that are run with ranks as processes and as threads of one process, and
# of those that are run one way. ThreadSanitizer sees no process but its own: what ranks do to each
# other it sees where they are threads, and what a rank's helper does it sees there too. So it runs
# those alone, and nothing in which there is one thread.
set(ferry_ways 0 1)
set(ferry_way 0)
set(ferry_threads_alone FALSE)
if(FERRY_SANITIZE STREQUAL "thread")
  set(ferry_ways 1)
  set(ferry_way 1)
  set(ferry_threads_alone TRUE)
endif()
