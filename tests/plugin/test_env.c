/* An env plugin of version TEST_ENV_VERSION, which can be told to misbehave (test_env.h). */
#include "plugin/test_env.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nccl_env.h"

#define JOIN_(a, b, c) a##b##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define TABLE JOIN(ncclEnvPlugin_v, TEST_ENV_VERSION, )

static struct TestEnvCounts counts;
static atomic_int running;
static char answers[1024];
static char* last; /* the latest answer: given up at the next question, as the interface allows for the same name */
static int logging;
#if TEST_ENV_VERSION >= 2
static ncclDebugLogger_t logger;
#endif

NCCL_PLUGIN_EXPORT TestEnvCountsFunction testEnvCounts;
NCCL_PLUGIN_EXPORT const struct TestEnvCounts* testEnvCounts(void) {
  return &counts;
}

static void tell(const char* what) {
  const char* path = getenv("TEST_ENV_FILE");
  FILE* file = path != NULL ? fopen(path, "a") : NULL;
  if (file == NULL) return;
  fprintf(file, "%s\n", what);
  fclose(file);
}

static int told(const char* fault) {
  const char* faults = getenv("TEST_ENV_FAULT");
  return faults != NULL && strcmp(faults, fault) == 0;
}

static const char* getAnswer(const char* name) {
  const size_t length = strlen(name);
  char* value = NULL;
  if (atomic_fetch_add(&running, 1) > 0) ++counts.overlaps;
  ++counts.questions;
  free(last);
  last = NULL;
#if TEST_ENV_VERSION >= 2
  if (logging) logger(NCCL_LOG_INFO, NCCL_ENV, __FILE__, __LINE__, "test env: asked for %s", name);
#endif
  for (char* entry = answers; *entry != '\0' && value == NULL;) {
    char* end = strchrnul(entry, ';');
    if (strncmp(entry, name, length) == 0 && entry[length] == '=') {
      value = strndup(entry + length + 1, (size_t)(end - entry) - length - 1);
    }
    entry = *end == ';' ? end + 1 : end;
  }
  if (value == NULL && getenv(name) != NULL) value = strdup(getenv(name));
  last = value;
  atomic_fetch_sub(&running, 1);
  return value;
}

static ncclResult_t finalize(void) {
  ++counts.finalizes;
  free(last);
  last = NULL;
  tell("finalize");
  return told("finalize") ? ncclSystemError : ncclSuccess;
}

static ncclResult_t start(unsigned major, unsigned minor, unsigned patch, const char* suffix);

#if TEST_ENV_VERSION >= 2
static ncclResult_t init(uint8_t major, uint8_t minor, uint8_t patch, const char* suffix, ncclDebugLogger_t log) {
  logger = log;
  log(NCCL_LOG_INFO, NCCL_ENV, __FILE__, __LINE__, "test env: hello");
  if (told("init")) log(NCCL_LOG_WARN, NCCL_ENV, __FILE__, __LINE__, "test env: no settings today");
  return start(major, minor, patch, suffix);
}
NCCL_PLUGIN_EXPORT ncclEnv_v2_t TABLE = {.name = "testenv2", .init = init};
#else
static ncclResult_t init(uint8_t major, uint8_t minor, uint8_t patch, const char* suffix) {
  return start(major, minor, patch, suffix);
}
NCCL_PLUGIN_EXPORT ncclEnv_v1_t TABLE = {.name = "testenv1", .init = init};
#endif

static ncclResult_t start(unsigned major, unsigned minor, unsigned patch, const char* suffix) {
  char text[64];
  ++counts.inits;
  snprintf(text, sizeof(text), "init %u.%u.%u '%s'", major, minor, patch, suffix);
  tell(text);
  if (told("init") || told("silent")) return ncclSystemError;
  if (told("sleeps")) sleep(600);
  if (told("calls-back")) {
    typedef ncclResult_t MakeId(ncclUniqueId*);
    ncclUniqueId id;
    MakeId* make = NULL;
    *(void**)&make = dlsym(RTLD_DEFAULT, "ncclGetUniqueId");
    return make != NULL ? make(&id) : ncclInternalError;
  }
  logging = told("logs");
  if (getenv("TEST_ENV_ANSWERS") != NULL) snprintf(answers, sizeof(answers), "%s", getenv("TEST_ENV_ANSWERS"));
  /* Not before: the library reads the table after init. */
  if (!told("no-getenv")) TABLE.getEnv = getAnswer;
  TABLE.finalize = finalize;
  return ncclSuccess;
}
