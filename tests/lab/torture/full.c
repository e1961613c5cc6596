/* A disk that is full, or became read-only, from the n-th write below a folder on: preloaded, and told by
   injected_fault(n, errno, folder). Writes are write, pwrite, new files, new folders, renames and links. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static long first, seen;
static int number;
static char below[4096];

void injected_fault(long at, int error, const char *folder) {
  first = at;
  seen = 0;
  number = error;
  strncpy(below, folder, sizeof below - 1);
}

long injected_writes(void) { return seen; }

static int fails(const char *path) {
  if (!below[0] || !path || strncmp(path, below, strlen(below))) return 0;
  long now = __atomic_add_fetch(&seen, 1, __ATOMIC_RELAXED);
  if (!first || now < first) return 0;
  errno = number;
  return 1;
}

static int handle_fails(int handle) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
  long length = below[0] ? readlink(link, path, sizeof path - 1) : -1;
  if (length < 0) return 0;
  path[length] = 0;
  return fails(path);
}

ssize_t write(int handle, const void *data, size_t size) {
  return handle_fails(handle) ? -1 : REAL(write)(handle, data, size);
}

ssize_t pwrite64(int handle, const void *data, size_t size, off64_t at) {
  return handle_fails(handle) ? -1 : REAL(pwrite64)(handle, data, size, at);
}

int mkdir(const char *path, mode_t mode) { return fails(path) ? -1 : REAL(mkdir)(path, mode); }

int rename(const char *from, const char *to) { return fails(to) ? -1 : REAL(rename)(from, to); }

int link(const char *from, const char *to) { return fails(to) ? -1 : REAL(link)(from, to); }

static int opens(int (*real)(const char *, int, ...), const char *path, int flags, mode_t mode) {
  int writes = flags & (O_WRONLY | O_RDWR | O_CREAT);
  return writes && fails(path) ? -1 : real(path, flags, mode);
}

int open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return opens(REAL(open), path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return opens(REAL(open64), path, flags, mode);
}
