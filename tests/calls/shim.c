/* Counts the calls that a program makes into MPI: preloaded before the library, each function notes its operands and goes
   on to its PMPI form. Operands are passed on as 64-bit integers: all of these functions take integers and pointers only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

#define MAX_CALLS 4096
#define OPERANDS 13

typedef long (*fn)(long, long, long, long, long, long, long, long, long, long, long, long, long);

struct call { const char *name; long operand[OPERANDS]; long array[OPERANDS][2]; /* what array operands begin with */ };
static struct call calls[MAX_CALLS];
static int count, on;
static void *library;

void counted_bind(const char *path) { library = dlopen(path, RTLD_NOW); }
void counted_start(void) { count = 0; on = 1; }
int counted_stop(void) { on = 0; return count < MAX_CALLS ? count : MAX_CALLS; }
const char *counted_name(int i) { return calls[i].name; }
const long *counted_operands(int i) { return calls[i].operand; }
const long *counted_array(int i, int operand) { return calls[i].array[operand]; }

#define WRAP(NAME, ARRAYS)                                                                                              \
  long NAME(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l, long m) {  \
    static fn next;                                                                                                     \
    if (!next) next = (fn)dlsym(library, "P" #NAME);                                                                    \
    int own = on ? __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED) : MAX_CALLS; /* threads call at the same time */     \
    if (own < MAX_CALLS) {                                                                                              \
      long given[OPERANDS] = {a, b, c, d, e, f, g, h, i, j, k, l, m};                                                   \
      calls[own].name = #NAME;                                                                                          \
      memcpy(calls[own].operand, given, sizeof given);                                                                  \
      for (int at = 0; at < OPERANDS; at++)                                                                             \
        if ((ARRAYS) >> at & 1 && given[at]) memcpy(calls[own].array[at], (void *)given[at], 8 * (1 + WIDE(NAME)));     \
    }                                                                                                                   \
    return next(a, b, c, d, e, f, g, h, i, j, k, l, m);                                                                 \
  }

/* two counts: int, or MPI_Count in the large-count forms, whose names end in _c */
#define WIDE(NAME) (sizeof #NAME > 3 && #NAME[sizeof #NAME - 2] == 'c' && #NAME[sizeof #NAME - 3] == '_')

#include "wrapped.h"
