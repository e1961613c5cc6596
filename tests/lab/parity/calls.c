/* Notes the calls that a program makes into MPI, each with its operands, and writes them before MPI is finalised: a line a
   call, in $CALLS_FOLDER/$PMI_RANK. It is preloaded. Operands are passed on as 64-bit integers: all of these functions take
   integers and pointers only. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_CALLS 200000
#define OPERANDS 13

typedef long (*fn)(long, long, long, long, long, long, long, long, long, long, long, long, long);

static struct call { const char *name; long operand[OPERANDS]; } calls[MAX_CALLS];
static int count;

static fn next_of(const char *name)
{
    static void *library;
    if (!library)
        library = dlopen(getenv("CALLS_LIBRARY"), RTLD_NOW);
    return (fn)dlsym(library, name);
}

static void write_calls(void)
{
    char path[4096];
    const char *folder = getenv("CALLS_FOLDER"), *rank = getenv("PMI_RANK");
    if (!count || !folder || !rank)
        return;
    snprintf(path, sizeof path, "%s/%s", folder, rank);
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    for (int i = 0; i < count; i++) {
        fputs(calls[i].name, file);
        for (int k = 0; k < OPERANDS; k++)
            fprintf(file, " %ld", calls[i].operand[k]);
        fputc('\n', file);
    }
    fclose(file);
}

int MPI_Finalize(void)
{
    write_calls();
    return (int)next_of("PMPI_Finalize")(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

#define WRAP(NAME)                                                                                                     \
    long NAME(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l, long m) \
    {                                                                                                                  \
        static fn next;                                                                                                \
        if (!next)                                                                                                     \
            next = next_of("P" #NAME);                                                                                 \
        if (count < MAX_CALLS)                                                                                         \
            calls[count++] = (struct call){#NAME, {a, b, c, d, e, f, g, h, i, j, k, l, m}};                           \
        return next(a, b, c, d, e, f, g, h, i, j, k, l, m);                                                            \
    }

#include "wrapped.h"
