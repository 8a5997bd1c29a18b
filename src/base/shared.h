/* Marks what Ferry's own files need of each other: what the core library exports for the data
 * library and for plug-ins, which are linked to it, and the plug-ins' tables. For nobody else. */
#ifndef FY_SHARED_H
#define FY_SHARED_H

#define FY_SHARED __attribute__((visibility("default")))

#endif
