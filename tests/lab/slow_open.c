/* A preload library that makes each open of a file wait as long as OMB_SLOW_OPEN_US says, as on a busy parallel file
   system. What the dynamic loader opens for itself does not come here: that is the same for C and Python. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void wait_for(const char *path)
{
    const char *us = getenv("OMB_SLOW_OPEN_US");
    if (us == NULL || path == NULL || strncmp(path, "/proc", 5) == 0 || strncmp(path, "/sys", 4) == 0 || strncmp(path, "/dev", 4) == 0)
        return;
    struct timespec pause = {0, atol(us) * 1000};
    nanosleep(&pause, NULL);
}

static mode_t mode_in(int flags, va_list more)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
}

#define OPEN(name)                                                                        \
    int name(const char *path, int flags, ...)                                            \
    {                                                                                     \
        va_list more;                                                                     \
        va_start(more, flags);                                                            \
        mode_t mode = mode_in(flags, more);                                               \
        va_end(more);                                                                     \
        wait_for(path);                                                                   \
        return ((int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name))(path, flags, mode); \
    }
#define OPENAT(name)                                                                      \
    int name(int folder, const char *path, int flags, ...)                                \
    {                                                                                     \
        va_list more;                                                                     \
        va_start(more, flags);                                                            \
        mode_t mode = mode_in(flags, more);                                               \
        va_end(more);                                                                     \
        wait_for(path);                                                                   \
        return ((int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, #name))(folder, path, flags, mode); \
    }
#define FOPEN(name)                                                                       \
    FILE *name(const char *path, const char *how)                                         \
    {                                                                                     \
        wait_for(path);                                                                   \
        return ((FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, #name))(path, how); \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
FOPEN(fopen)
FOPEN(fopen64)
