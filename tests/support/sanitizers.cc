// What sanitizers are told by every program of the tests.

#if defined(__SANITIZE_THREAD__)
/// The C library frees the thread-local variables of threads that have ended when it makes room for others' stacks. It
/// knows by a word that the kernel clears that they have ended, which ThreadSanitizer does not see.
extern "C" __attribute__((visibility("default"))) const char*
__tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier): its name
  return "race:_dl_deallocate_tls\n";
}
#endif
