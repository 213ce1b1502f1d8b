// Runs one function of a generated library on buffers from a file, for a processor that is emulated.
// emulated LIBRARY SYMBOL FILE: FILE is counts and buffers (i64 bytes, i64 origin, data), written back in place.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "abi.h"

static void serial(BodyFunction body, void* context, i64 n, i64) {
  // in two pieces, as with two threads
  if (n > 1) body(context, 0, n / 2, 0);
  if (n > 0) body(context, n > 1 ? n / 2 : 0, n, 0);
}

int main(int, char** arguments) {
  dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL);
  void* const library = dlopen(arguments[1], RTLD_NOW);
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 2;
  typedef i64 (*Run)(void**, const i64*, const Runtime*, i64*);
  const Run run = reinterpret_cast<Run>(dlsym(library, arguments[2]));
  FILE* const file = fopen(arguments[3], "r+b");
  if (!run || !file) return 3;
  i64 count = 0;
  if (fread(&count, 8, 1, file) != 1) return 4;
  void** const buffers = static_cast<void**>(calloc(count + 1, sizeof(void*)));
  char** const memory = static_cast<char**>(calloc(count + 1, sizeof(char*)));
  i64* const bytes = static_cast<i64*>(calloc(count + 1, 8));
  for (i64 k = 0; k < count; ++k) {
    i64 origin = 0;
    if (fread(bytes + k, 8, 1, file) != 1 || fread(&origin, 8, 1, file) != 1) return 5;
    memory[k] = static_cast<char*>(aligned_alloc(64, (bytes[k] + 127) / 64 * 64));
    if (fread(memory[k], 1, bytes[k], file) != static_cast<size_t>(bytes[k])) return 6;
    buffers[k] = memory[k] + origin;
  }
  Runtime runtime = {};
  runtime.parallel_for = serial;
  runtime.num_threads = 1;
  i64 error[4] = {};
  const i64 status = run(buffers, nullptr, &runtime, error);
  rewind(file);
  fwrite(&status, 8, 1, file);
  for (i64 k = 0; k < count; ++k) fwrite(memory[k], 1, bytes[k], file);
  return fclose(file) ? 7 : 0;
}
