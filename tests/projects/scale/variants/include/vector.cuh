#pragma once
template <int WIDTH>
struct alignas(4 * WIDTH) Vector {
    float at[WIDTH];
};
