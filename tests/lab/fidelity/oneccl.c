/* The barest loop over oneCCL's allreduce of int32: the function's address is passed in, so no header is needed.
 *
 * Writes this rank's time of each call in microseconds; a reduction of one byte follows each, outside the time.
 */
#include <stddef.h>
#include <time.h>

typedef int (*Allreduce)(const void *, void *, size_t, int, int, void *, void *);
enum { CHAR = 0, INT32 = 2, SUM = 0, MAX = 2 };

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

int allreduce(Allreduce call, void *comm, const char *send, char *recv, char *scratch, int size, int iterations, int warmup,
              double *samples_us)
{
    int code = call(scratch, scratch, 1, CHAR, MAX, comm, NULL);

    for (int i = 0; i < iterations + warmup && code == 0; i++) {
        double start = now_us();
        code = call(send, recv, (size_t)size / sizeof(int), INT32, SUM, comm, NULL);
        double stop = now_us();
        if (i >= warmup)
            samples_us[i - warmup] = stop - start;
        if (code == 0)
            code = call(scratch, scratch, 1, CHAR, MAX, comm, NULL);
    }
    return code;
}
