/* What stands in the folder of hwloc's plugins under the name of one: says in the environment that it was opened. */
#include <stdlib.h>

__attribute__((constructor)) static void opened(void) {
  setenv("TUTTI_TEST_PLUGIN_OPENED", "1", 1);
}
