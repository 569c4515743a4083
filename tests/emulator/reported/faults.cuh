// Each kernel is right by itself; with WRONG it has the fault that its table names.
#pragma once

#ifdef WRONG
#define RIGHT(...)
#define FAULT(...) __VA_ARGS__
#else
#define RIGHT(...) __VA_ARGS__
#define FAULT(...)
#endif
