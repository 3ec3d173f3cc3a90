// What the search for leaks is told by programs that make and end communicators all the time.

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
