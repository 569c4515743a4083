// Sorts argv[1] random keys of the seed argv[2]; the number of comparisons is the same in each run.
#include <cstdio>
#include <cstdlib>
#include <ctime>

enum class Method { insertion, shell, heap };

static long long comparisons = 0;

static bool before(unsigned a, unsigned b) {
    ++comparisons;
    return a < b;
}

static void swap(unsigned& a, unsigned& b) {
    unsigned kept = a;
    a = b;
    b = kept;
}

static void sort_with_gap(unsigned* keys, int count, int gap) {
    for (int i = gap; i < count; ++i)
        for (int j = i; j >= gap && before(keys[j], keys[j - gap]); j -= gap)
            swap(keys[j], keys[j - gap]);
}

static void sift_down(unsigned* keys, int count, int parent) {
    for (int child = 2 * parent + 1; child < count; parent = child, child = 2 * parent + 1) {
        if (child + 1 < count && before(keys[child], keys[child + 1])) ++child;
        if (!before(keys[parent], keys[child])) return;
        swap(keys[parent], keys[child]);
    }
}

static void sort(unsigned* keys, int count) {
    if (Method::KX_METHOD == Method::heap) {
        for (int parent = count / 2; parent-- > 0;) sift_down(keys, count, parent);
        while (--count > 0) {
            swap(keys[0], keys[count]);
            sift_down(keys, count, 0);
        }
        return;
    }
    if (Method::KX_METHOD == Method::shell)
        for (int gap : {701, 301, 132, 57, 23, 10, 4}) sort_with_gap(keys, count, gap);
    sort_with_gap(keys, count, 1);
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    int count = atoi(argv[1]);
    srand(atoi(argv[2]));
    unsigned* keys = new unsigned[count];
    for (int i = 0; i < count; ++i) keys[i] = rand();
    timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    sort(keys, count);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ms = (end.tv_sec - begin.tv_sec) * 1e3 + (end.tv_nsec - begin.tv_nsec) * 1e-6;
    bool sorted = true;
    for (int i = 1; i < count; ++i) sorted = sorted && keys[i - 1] <= keys[i];
    printf("%lld comparisons in %g ms\n%g Mkeys/s\n", comparisons, ms, count / ms / 1e3);
    printf("sorted: %s\n", sorted ? "yes" : "no");
}
