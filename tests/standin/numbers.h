/* Elements of NCCL's types in the stand-in: read, written, reduced, multiplied and divided. */
#include <stdint.h>
#include <string.h>

static const int width[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

/* reductions, in double or int64: the inputs of a check are small whole numbers, so both are exact */
static double fp8(int code, int fraction_bits, int bias) { /* of finite ones that are not negative */
  int exponent = code >> fraction_bits, fraction = code & ((1 << fraction_bits) - 1);
  double power = 1, part = (double)fraction / (1 << fraction_bits);
  for (int i = bias; i < exponent; i++) power *= 2;
  for (int i = exponent ? exponent : 1; i < bias; i++) power /= 2;
  return power * (exponent ? 1 + part : part);
}
static double get(const char* at, int dtype) {
  switch (dtype) {
    case 10: return fp8(*(const uint8_t*)at, 3, 7);
    case 11: return fp8(*(const uint8_t*)at, 2, 15);
    case 6: return (double)*(const _Float16*)at;
    case 7: return *(const float*)at;
    case 8: return *(const double*)at;
    default: { uint32_t bits = (uint32_t)*(const uint16_t*)at << 16; float f; memcpy(&f, &bits, 4); return f; }
  }
}
static void put(char* at, int dtype, double v) {
  int code = 0;
  switch (dtype) {
    case 10: case 11:
      while (code < 123 && get((char[]){(char)(code + 1)}, dtype) <= v) code++;
      *(uint8_t*)at = (uint8_t)code;
      break;
    case 6: *(_Float16*)at = (_Float16)v; break;
    case 7: *(float*)at = (float)v; break;
    case 8: *(double*)at = v; break;
    default: { float f = (float)v; uint32_t bits; memcpy(&bits, &f, 4); *(uint16_t*)at = (uint16_t)(bits >> 16); }
  }
}
#define FOLD(a, b, op) ((op) == 0 ? (a) + (b) : (op) == 1 ? (a) * (b) : (op) == 2 ? ((a) > (b) ? (a) : (b)) : ((a) < (b) ? (a) : (b)))
#define INTEGERS(T) do { T* x = (T*)into; const T* y = (const T*)from; \
  for (size_t i = 0; i < n; i++) x[i] = (T)FOLD(x[i], y[i], op); } while (0)
static void fold(char* into, const char* from, size_t n, int dtype, int op) {
  switch (dtype) {
    case 0: INTEGERS(int8_t); return;
    case 1: INTEGERS(uint8_t); return;
    case 2: INTEGERS(int32_t); return;
    case 3: INTEGERS(uint32_t); return;
    case 4: INTEGERS(int64_t); return;
    case 5: INTEGERS(uint64_t); return;
  }
  for (size_t i = 0; i < n; i++) {
    char* x = into + i * width[dtype];
    put(x, dtype, FOLD(get(x, dtype), get(from + i * width[dtype], dtype), op));
  }
}

/* a number as the type has it: the nearest, of two the even one */
static double rounded(double v, int dtype) {
  switch (dtype) {
    case 10: case 11: {
      int code = 0;
      while (code < 123 && get((char[]){(char)(code + 1)}, dtype) <= v) code++;
      double low = get((char[]){(char)code}, dtype), high = get((char[]){(char)(code + 1)}, dtype);
      return v - low < high - v || (v - low == high - v && code % 2 == 0) ? low : high;
    }
    case 6: return (double)(_Float16)(float)v;
    case 7: return (float)v;
    case 8: return v;
    default: {
      float f = (float)v;
      uint32_t bits;
      memcpy(&bits, &f, 4);
      bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000u;
      memcpy(&f, &bits, 4);
      return f;
    }
  }
}
#define EACH(T, what) do { T* x = (T*)at; for (size_t i = 0; i < n; i++) x[i] = (T)(x[i] what); } while (0)
#define INTEGER(what) switch (dtype) { \
    case 0: EACH(int8_t, what); return; case 1: EACH(uint8_t, what); return; case 2: EACH(int32_t, what); return; \
    case 3: EACH(uint32_t, what); return; case 4: EACH(int64_t, what); return; case 5: EACH(uint64_t, what); return; }
static void multiply(char* at, size_t n, int dtype, double by) {
  INTEGER(* (int)by)
  for (size_t i = 0; i < n; i++, at += width[dtype]) put(at, dtype, rounded(get(at, dtype) * by, dtype));
}
static void divide(char* at, size_t n, int dtype, int by) { INTEGER(/ by) }
