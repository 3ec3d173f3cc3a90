/* What an env plugin and the library say to each other: versions 1 and 2 of the interface. C99 and C++.
 *
 * An env plugin answers what the library would otherwise ask the environment of the process: it is a shared library
 * that exports one object named ncclEnvPlugin_v2 or ncclEnvPlugin_v1. NCCL_ENV_PLUGIN, which is read from the
 * environment itself, says where it is. Names, layouts and values are fixed by the programs that use them and never
 * change. */
#ifndef NCCL_ENV_H_
#define NCCL_ENV_H_

#include <stdint.h>

#include "nccl_net_types.h" /* ncclDebugLogger_t, NCCL_PLUGIN_EXPORT */

#ifdef __cplusplus
extern "C" {
#endif

/** Called once in a process, before everything else. The numbers are the library's version; `suffix` belongs to it and
 * is "" for a release. No function of the library may be called from here. An error fails the call that needed the
 * settings, and all later ones: nothing replaces a plugin that was found. */
typedef ncclResult_t ncclEnvInit_v1_fn(uint8_t ncclMajor, uint8_t ncclMinor, uint8_t ncclPatch, const char* suffix);
typedef ncclResult_t ncclEnvInit_v2_fn(uint8_t ncclMajor, uint8_t ncclMinor, uint8_t ncclPatch, const char* suffix,
                                       ncclDebugLogger_t log);

/** The value of a setting; NULL where it is not set. Asked from any thread, after init and before finalize, by one
 * thread at a time. The text must stay until the same name is asked for again, or until finalize. */
typedef const char* ncclEnvGet_v1_fn(const char* name);

/** Called once, when the process ends after an init that succeeded. */
typedef ncclResult_t ncclEnvFinalize_v1_fn(void);

/** An env plugin. finalize may be NULL. */
typedef struct {
  const char* name; /**< in log lines */
  ncclEnvInit_v2_fn* init;
  ncclEnvFinalize_v1_fn* finalize;
  ncclEnvGet_v1_fn* getEnv;
} ncclEnv_v2_t;

typedef struct {
  const char* name;
  ncclEnvInit_v1_fn* init;
  ncclEnvFinalize_v1_fn* finalize;
  ncclEnvGet_v1_fn* getEnv;
} ncclEnv_v1_t;

#ifdef __cplusplus
}
#endif

#endif /* NCCL_ENV_H_ */
