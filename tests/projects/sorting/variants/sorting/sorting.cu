#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

enum class Method { insertion, shell, heap };

static long long comparisons = 0;

static bool before(unsigned a, unsigned b) {
    ++comparisons;
    return a < b;
}

static void sort_with_gaps(std::vector<unsigned>& keys, std::initializer_list<int> gaps) {
    for (int gap : gaps)
        for (int i = gap; i < int(keys.size()); ++i)
            for (int j = i; j >= gap && before(keys[j], keys[j - gap]); j -= gap)
                std::swap(keys[j], keys[j - gap]);
}

static void sort(std::vector<unsigned>& keys) {
    if (Method::KX_METHOD == Method::insertion) {
        sort_with_gaps(keys, {1});
    } else if (Method::KX_METHOD == Method::shell) {
        sort_with_gaps(keys, {701, 301, 132, 57, 23, 10, 4, 1});
    } else {
        std::make_heap(keys.begin(), keys.end(), before);
        std::sort_heap(keys.begin(), keys.end(), before);
    }
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    std::mt19937 random(std::atoi(argv[2]));
    std::vector<unsigned> keys(std::atoi(argv[1]));
    for (unsigned& key : keys) key = random();
    auto begin = std::chrono::steady_clock::now();
    sort(keys);
    std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
    std::printf("%lld comparisons in %g ms\n", comparisons, taken.count());
    std::printf("%g Mkeys/s\n", keys.size() / taken.count() / 1e3);
    std::printf("sorted: %s\n", std::is_sorted(keys.begin(), keys.end()) ? "yes" : "no");
}
