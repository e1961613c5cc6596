/* Another machine as the C library tells of it: so many cores (INJECTED_CORES), and a clock of day that steps by three
   seconds at each fiftieth reading, back and forward again (INJECTED_CLOCK). If it only went back, it would do so faster
   than time passes, and a library that waits for a microsecond of that clock, as UCX does when it is loaded, would never
   be done. Preloaded; times that only go forward stay as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static cpu_set_t bound;
static int is_bound;

static long cores(void) {
  const char *text = getenv("INJECTED_CORES");
  return text ? atol(text) : 0;
}

long sysconf(int name) {
  static __typeof__(&sysconf) real;
  if (!real) real = REAL(sysconf);
  long number = name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF ? cores() : 0;
  return number ? number : real(name);
}

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set) {
  long number = cores();
  if (!number) return REAL(sched_getaffinity)(pid, size, set);
  memset(set, 0, size);
  if (is_bound)
    memcpy(set, &bound, size < sizeof bound ? size : sizeof bound);
  else
    for (long core = 0; core < number; core++) CPU_SET_S(core, size, set);
  return 0;
}

int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set) {
  if (!cores()) return REAL(sched_setaffinity)(pid, size, set);
  memset(&bound, 0, sizeof bound);
  memcpy(&bound, set, size < sizeof bound ? size : sizeof bound);
  is_bound = 1;
  return 0;
}

static time_t behind(void) {
  static long readings;
  return getenv("INJECTED_CLOCK") ? 3 * (__atomic_add_fetch(&readings, 1, __ATOMIC_RELAXED) / 50 % 2) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  static __typeof__(&clock_gettime) real;
  if (!real) real = REAL(clock_gettime);
  int failed = real(clock, at);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec -= behind();
  return failed;
}

int gettimeofday(struct timeval *at, void *zone) {
  static __typeof__(&gettimeofday) real;
  if (!real) real = REAL(gettimeofday);
  int failed = real(at, zone);
  if (!failed) at->tv_sec -= behind();
  return failed;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
