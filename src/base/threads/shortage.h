// Threads that outlast a shortage of host memory.
#pragma once

#include <functional>

namespace tutti {

/// Runs `body`, the loop of a service thread; again after a pause where the process had no host memory for it, for
/// that may pass. What was under way is lost, so `body` must be fit to begin anew,
/// end at once where it has been told to, and keep what matters elsewhere.
void throughShortages(const std::function<void()>& body);

/// Runs `body`, of which nothing depends, as far as there is host memory for it.
void ignoringShortage(const std::function<void()>& body);

}  // namespace tutti
