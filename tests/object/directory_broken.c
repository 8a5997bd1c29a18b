/* A shared object with a directory protocol that lacks a function. */
#include <ferry/directory.h>

FERRY_API const ferry_directory_protocol ferry_directory_plugin = {
    .size = sizeof(ferry_directory_protocol), .name = "broken"};
