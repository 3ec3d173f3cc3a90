// What the runtime tells the user: one line on stderr, once per subject, since the API's error numbers carry no text.
#pragma once

namespace tutti::softgpu {

/// Prints "softgpu: <text>" on stderr unless a line about `subject` was printed before. Thread-safe.
[[gnu::format(printf, 2, 3)]] void reportOnce(const char* subject, const char* format, ...);

}  // namespace tutti::softgpu
