/* A tuner plugin that reads its decisions from a file of comma-separated values; README.md says how they look. It needs
 * nothing of the library but nccl_tuner.h. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "nccl_tuner.h"

enum { kFields = 8, kLineBytes = 1024, kAny = -1 };

/* A line of the file. kAny, in any field: whatever it is; no wish. */
typedef struct {
  int collective;
  long long minBytes, maxBytes;
  int algorithm, protocol, channels;
  int nodes, ranks;
} Rule;

/* One communicator's. */
typedef struct {
  Rule* rules;
  size_t nRules;
  ncclDebugLogger_t log;
} Tuner;

static const char* const collectives[] = {"broadcast", "reduce", "allgather", "reducescatter", "allreduce", NULL};
static const char* const algorithms[] = {"tree", "ring",     "collnetdirect", "collnetchain",
                                         "nvls", "nvlstree", "pat",           NULL};
static const char* const protocols[] = {"ll", "ll128", "simple", NULL};

#define WARN(log, line, ...) (log)(NCCL_LOG_WARN, NCCL_TUNING, __FILE__, line, __VA_ARGS__)

/* The number of a name, in any case; kAny for "-1"; -2: there is no such name. */
static int numberOf(const char* const* names, const char* text) {
  if (strcmp(text, "-1") == 0) return kAny;
  for (int i = 0; names[i] != NULL; ++i) {
    if (strcasecmp(names[i], text) == 0) return i;
  }
  return -2;
}

/* A whole number from -1 on. */
static int readNumber(const char* text, long long* number) {
  char* end = NULL;
  errno = 0;
  *number = strtoll(text, &end, 10);
  return errno == 0 && end != text && *end == '\0' && *number >= kAny;
}

static char* trimmed(char* text) {
  while (isspace((unsigned char)*text)) ++text;
  char* end = text + strlen(text);
  while (end > text && isspace((unsigned char)end[-1])) --end;
  *end = '\0';
  return text;
}

/* Cuts a line into its fields; how many there are. */
static int fieldsOf(char* line, char** fields) {
  int n = 0;
  for (char* at = line; at != NULL; ++n) {
    char* comma = strchr(at, ',');
    if (comma != NULL) *comma = '\0';
    if (n < kFields) fields[n] = trimmed(at);
    at = comma != NULL ? comma + 1 : NULL;
  }
  return n;
}

/* Reads one line; what is wrong with it, or NULL. */
static const char* readRule(char* line, Rule* rule) {
  char* fields[kFields];
  if (fieldsOf(line, fields) != kFields) return "it has not eight fields";
  rule->collective = numberOf(collectives, fields[0]);
  if (rule->collective < kAny) return "unknown collective";
  if (!readNumber(fields[1], &rule->minBytes) || !readNumber(fields[2], &rule->maxBytes)) return "sizes are no numbers";
  if (rule->maxBytes != kAny && rule->maxBytes < rule->minBytes) return "the largest size is below the smallest";
  rule->algorithm = numberOf(algorithms, fields[3]);
  if (rule->algorithm < kAny) return "unknown algorithm";
  rule->protocol = numberOf(protocols, fields[4]);
  if (rule->protocol < kAny) return "unknown protocol";
  long long numbers[3];
  for (int i = 0; i < 3; ++i) {
    if (!readNumber(fields[5 + i], &numbers[i]) || numbers[i] > 1000000)
      return "channels, nodes or ranks are no numbers";
  }
  rule->channels = (int)numbers[0];
  rule->nodes = (int)numbers[1];
  rule->ranks = (int)numbers[2];
  return NULL;
}

static ncclResult_t addRule(Tuner* tuner, const Rule* rule) {
  Rule* const more = realloc(tuner->rules, (tuner->nRules + 1) * sizeof *more);
  if (more == NULL) return ncclSystemError;
  tuner->rules = more;
  tuner->rules[tuner->nRules++] = *rule;
  return ncclSuccess;
}

/* Keeps the rules that may ever match for so many nodes and ranks. */
static ncclResult_t readRules(Tuner* tuner, FILE* file, const char* name, int nNodes, int nRanks) {
  char line[kLineBytes];
  for (int number = 1; fgets(line, sizeof line, file) != NULL; ++number) {
    char* const text = trimmed(line);
    if (*text == '\0' || *text == '#') continue;
    char copy[kLineBytes];
    memcpy(copy, text, strlen(text) + 1);
    Rule rule;
    const char* const wrong = readRule(copy, &rule);
    if (wrong != NULL) {
      WARN(tuner->log, __LINE__, "line %d of %s: %s: %s", number, name, wrong, text);
      return ncclInvalidUsage;
    }
    const int fits = (rule.nodes == kAny || rule.nodes == nNodes) && (rule.ranks == kAny || rule.ranks == nRanks);
    if (fits && addRule(tuner, &rule) != ncclSuccess) {
      WARN(tuner->log, __LINE__, "no memory for the rules of %s", name);
      return ncclSystemError;
    }
  }
  return ncclSuccess;
}

static ncclResult_t csvFinalize(void* context) {
  Tuner* const tuner = context;
  free(tuner->rules);
  free(tuner);
  return ncclSuccess;
}

static ncclResult_t csvInit(void** context, uint64_t commId, size_t nRanks, size_t nNodes, ncclDebugLogger_t log,
                            ncclNvlDomainInfo_v6_t* domains, ncclTunerConstants_v6_t* constants) {
  (void)commId, (void)domains, (void)constants;
  const char* const name = getenv("TUNER_CSV_FILE");
  if (name == NULL || *name == '\0') {
    WARN(log, __LINE__, "TUNER_CSV_FILE names no file: set it to one with decisions");
    return ncclInvalidUsage;
  }
  FILE* const file = fopen(name, "re");
  if (file == NULL) {
    WARN(log, __LINE__, "cannot open %s: %s", name, strerror(errno));
    return ncclSystemError;
  }
  Tuner* const tuner = calloc(1, sizeof *tuner);
  ncclResult_t result = ncclSystemError;
  if (tuner != NULL) {
    tuner->log = log;
    result = readRules(tuner, file, name, (int)nNodes, (int)nRanks);
  }
  fclose(file);
  if (result != ncclSuccess) {
    if (tuner != NULL) csvFinalize(tuner);
    return result;
  }
  log(NCCL_LOG_INFO, NCCL_INIT | NCCL_TUNING, __FILE__, __LINE__,
      "tuner_csv: %zu rules of %s are for %zu nodes, %zu ranks", tuner->nRules, name, nNodes, nRanks);
  *context = tuner;
  return ncclSuccess;
}

/* The first rule for a collective of that size; NULL: none. */
static const Rule* ruleFor(const Tuner* tuner, ncclFunc_t collective, size_t bytes) {
  for (size_t i = 0; i < tuner->nRules; ++i) {
    const Rule* const rule = &tuner->rules[i];
    if (rule->collective != kAny && rule->collective != (int)collective) continue;
    if (rule->minBytes != kAny && bytes < (size_t)rule->minBytes) continue;
    if (rule->maxBytes != kAny && bytes > (size_t)rule->maxBytes) continue;
    return rule;
  }
  return NULL;
}

static ncclResult_t csvGetCollInfo(void* context, ncclFunc_t collective, size_t bytes, int pipeOps, float** table,
                                   int nAlgorithms, int nProtocols, int registered, int* nChannels) {
  (void)pipeOps, (void)registered;
  const Rule* const rule = ruleFor(context, collective, bytes);
  if (rule == NULL) return ncclSuccess;
  if (rule->channels != kAny) *nChannels = rule->channels;
  if (rule->algorithm == kAny && rule->protocol == kAny) return ncclSuccess;
  /* What the rule names, as far as it can be had, becomes quicker than anything else, and keeps its order. */
  const float kFavour = 1e-6f;
  float* const times = (float*)table;
  for (int a = 0; a < nAlgorithms; ++a) {
    for (int p = 0; p < nProtocols; ++p) {
      float* const time = &times[a * nProtocols + p];
      const int named =
          (rule->algorithm == kAny || rule->algorithm == a) && (rule->protocol == kAny || rule->protocol == p);
      if (named && *time > 0) *time *= kFavour;
    }
  }
  return ncclSuccess;
}

NCCL_PLUGIN_EXPORT extern const ncclTuner_v6_t ncclTunerPlugin_v6;
const ncclTuner_v6_t ncclTunerPlugin_v6 = {
    .name = "csv", .init = csvInit, .getCollInfo = csvGetCollInfo, .finalize = csvFinalize};
