/* A libcuda.so.1 that is far too old: it has cuInit and nothing else. */
__attribute__((visibility("default"))) int cuInit(unsigned int flags);
int cuInit(unsigned int flags) {
  (void)flags;
  return 0;
}
