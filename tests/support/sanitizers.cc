// What sanitizers are told by every program of the tests.

#if defined(__SANITIZE_THREAD__)
/// The C library frees the thread-local variables of threads that have ended when it makes room for others' stacks. It
/// knows by a word that the kernel clears that they have ended, which ThreadSanitizer does not see.
extern "C" __attribute__((visibility("default"))) const char*
__tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier): its name
  return "race:_dl_deallocate_tls\n";
}
#endif

#if defined(__SANITIZE_ADDRESS__)
/// The search for leaks reads the thread-local variables of libraries where threads no longer have them, and crashes.
/// What only these hold is little.
extern "C" __attribute__((visibility("default"))) const char*
__lsan_default_options() {  // NOLINT(bugprone-reserved-identifier): its name
  return "use_tls=0";
}
/// The C library's text of a failed dlopen() is such a thing.
extern "C" __attribute__((visibility("default"))) const char*
__lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier): its name
  return "leak:_dlerror_run\n";
}
#endif
