// How a define of the command line becomes an enumerator.
#pragma once

#define KX_PASTE(left, right) left##right

// KX_TOKEN(KX_COMBINED) under -DKX_COMBINED=inline is `inline_`: an axis may have a value that is a
// keyword of C++.
#define KX_TOKEN(define) KX_PASTE(define, _)
