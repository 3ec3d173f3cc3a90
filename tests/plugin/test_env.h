/* What a test env plugin counts, and how it is told what to do.
 *
 * TEST_ENV_ANSWERS=NAME=VALUE;…  its answers; for every other name it asks the environment
 * TEST_ENV_FAULT, read in init:  init       an error, with words in version 2
 *                                silent     an error without words
 *                                no-getenv  its table lacks getEnv after init
 *                                calls-back init asks the library for a unique id
 *                                sleeps     init does not return for ten minutes
 *                                finalize   an error in finalize
 *                                logs       getEnv logs, in version 2
 * TEST_ENV_FILE=PATH  takes a line for each init and finalize */
#ifndef TEST_ENV_H_
#define TEST_ENV_H_

#ifdef __cplusplus
extern "C" {
#endif

/** Counted since the library was loaded. */
struct TestEnvCounts {
  int inits;
  int finalizes;
  int questions;
  int overlaps; /**< calls of getEnv that began while another one ran */
};

/** The function that each test plugin exports as "testEnvCounts". */
typedef const struct TestEnvCounts* TestEnvCountsFunction(void);

#ifdef __cplusplus
}
#endif

#endif /* TEST_ENV_H_ */
