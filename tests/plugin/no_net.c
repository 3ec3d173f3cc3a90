/* A library that is no network plugin. */
__attribute__((visibility("default"))) int somethingElse(void);
int somethingElse(void) {
  return 1;
}
