// Names of exported functions that know a default stream, for sources without the toolkit's declarations of them.
#pragma once

/// `name`, or with its suffix where the source is built for the per-thread default stream.
#ifdef SOFTGPU_PER_THREAD_DEFAULT_STREAM
#define SOFTGPU_STREAM_CALL(name) name##_ptsz
#else
#define SOFTGPU_STREAM_CALL(name) name
#endif
