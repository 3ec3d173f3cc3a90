/* What a test plugin was told of memory, and from where it was asked to send: for tests of what is sent in place. Kept
 * since the library was loaded. Any thread. C and C++. */
#ifndef TEST_NET_MEMORY_H_
#define TEST_NET_MEMORY_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the plugin's side ---- */

/** A registration. 0: the plugin was told to refuse such memory. */
int enterMemory(void* connection, void* data, size_t bytes, void* handle);
void leaveMemory(void* connection, void* handle);
void sendMemory(void* connection, void* data, size_t bytes, void* handle);
/** Whatever was registered on it should have been taken back. */
void closeMemory(void* connection);

/* ---- a test's side ---- */

typedef struct {
  /** From now on memory that overlaps this is refused. */
  void (*refuse)(const void* data, size_t bytes);
  int (*refusals)(void);
  /** Messages from memory that was not registered, registrations left at close, such that were unknown. */
  int (*faults)(void);
  /** Registrations that overlap the memory, and are not taken back. */
  size_t (*registrationsOf)(const void* data, size_t bytes);
  /** The same, taken back or not. */
  size_t (*everRegistered)(const void* data, size_t bytes);
  size_t (*registrations)(void);
  /** Bytes that were sent from there. */
  size_t (*bytesFrom)(const void* data, size_t bytes);
  /** Bytes that were sent from anywhere, in messages of at least `least` bytes. */
  size_t (*bytesSent)(size_t least);
  /** From now on, and nothing before. */
  void (*watchSent)(void);
} TestNetMemory;

/** The function that each test plugin exports as "testNetMemory". */
typedef const TestNetMemory* TestNetMemoryFunction(void);
TestNetMemoryFunction testNetMemory;

#ifdef __cplusplus
}
#endif

#endif
