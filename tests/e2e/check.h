// What the small programs of the end-to-end tests do about an error: name the call and end.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(call, good)                                                        \
  do {                                                                           \
    const int result = static_cast<int>(call);                                   \
    if (result != static_cast<int>(good)) {                                      \
      std::printf("failed: %s:%d: %s: %d\n", __FILE__, __LINE__, #call, result); \
      std::exit(EXIT_FAILURE);                                                   \
    }                                                                            \
  } while (0)
