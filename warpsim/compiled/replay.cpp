// The model of time: sends recorded warps through the units of their SMs, cycle by cycle.
//
// An instruction issues when its warp's stall is over, its scoreboards are free and its pipe or
// queue has room; what it then takes of the units is known at once, as those before it have been
// served. What waits for others (barriers, mbarriers) waits for tokens: a token is complete when
// as many have signalled it as did in the recording.
//
// A wgmma is issued by four warps, of which the first puts it into the queue of the tensor cores
// and may be held there; the others go on, and wait for the first where all of them meet (H100:
// clocks read in each warp of an attention, at each of its phases).
#include <array>
#include <limits>
#include <map>

#include "units.hpp"

namespace kx::timing {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kBoards = 6;
constexpr size_t kEvents = 4'000'000;  // 160 MB
constexpr int kFirstShared = 0, kLastShared = 3;  // pipes whose operands are vector registers
constexpr double kRow = 32;  // bytes of a row of an operand, in one tcgen05.mma

struct Board {
  double free = 0;
  int pending = 0;  // on tokens
  Reason reason = kShort;
  int64_t cause = -1;  // the event that `free` follows from
};

// When something is complete, and the event that this follows from.
struct Due {
  double time;
  int64_t cause;
};

struct Span {
  const int32_t* blocks;
  size_t count;
  const int64_t* figures;
};

struct Warp {
  const Span* stream = nullptr;
  Sm* sm = nullptr;
  int subcore = 0, cta = 0;
  size_t block = 0, figure = 0;
  int at = 0, last = 0;    // instruction, end of its block
  double issue = 0;        // the next one, for all but its scoreboards
  double ready = kNever;   // with them
  double before = 0;       // when the one before issued, for reasons
  Reason held = kWait;     // why `issue` is not just after
  int64_t cause = -1;      // the event that `issue` follows from
  int tokens = 0;          // that it waits for itself
  bool blocked = false, ended = true;
  Reason throttle = kNotSelected;
  Board boards[kBoards];
  std::vector<Due> copies;
  double copying = 0, multiplying = 0;
  int64_t arrived = 0, committed = 0;  // at products, and groups of these
  int64_t copied = -1, multiplied = -1;  // events of the last of each
};

// Four warps that multiply together.
struct Warpgroup {
  std::array<int64_t, 4> arrived{};
  std::vector<Due> done;  // groups of products, as far as the first warp has issued them
};

struct Token {
  int64_t expected = 0, signalled = 0;
  double time = 0;
  int64_t cause = -1;
  std::vector<std::pair<int, int>> waiters;  // warp, board or -1
};

struct Job {
  const int64_t* sizes;        // blocks and figures of each warp
  const int32_t* blocks;       // warp by warp
  const int64_t* figures;
  const Instruction* code;
  const int32_t* last_of;      // by the first instruction of a block
  const Parameters* parameters;
  const Array* arrays;
  int64_t array_count;
  const int64_t* expected;     // signals, by token
  int64_t token_count;
  const int32_t* sm_of;        // by CTA
  int64_t ctas, warps_per_cta, sms, slots;  // resident on an SM at once
  double limit;
};

// An instruction that a warp of the traced CTA issued at `at`, and what it had waited for longest
// since the one before.
struct Traced {
  int32_t warp, instruction, reason, unused;
  double since, at;
};

// An instruction that issued: when its warp was ready for it, because of an earlier event and for
// what reason, and why it issued no sooner then.
struct Event {
  int32_t warp, instruction, reason, throttle;
  int64_t cause;
  double ready, at;
};

// Part of the longest chain of events that wait for each other, by a warp of a CTA, the instruction
// that it could not issue, the one that it waited for and why.
struct Step {
  int32_t warp, instruction, producer, reason;
  double cycles;
};

struct Outcome {
  double* ends;          // cycles, by CTA
  int64_t* reasons;      // [instructions][kReasons], in cycles of warps
  double* busy;          // [sms][kUnits]
  double* requested;     // bytes that L2 was asked for, by array: of loads each once by each SM
  double* written;       // bytes that it was given, by array
  double* prefetched;    // by array
  double* drained;       // when L2 has taken what it was given, by SM
  Traced* traced;        // of the first CTA, or null
  int64_t traced_limit;
  int64_t* traced_count;
  Step* path;              // or null
  int64_t path_limit;
  int64_t* path_count;     // -1: there were too many events
};

enum Unit { kIssue, kFma, kLite, kAlu, kXu, kTensor, kUniform, kFp64, kControl, kData, kL2Reads,
            kL2Writes, kDram, kTma, kUnits };

class Replay {
 public:
  Replay(const Job& job, const Outcome& outcome) : job_(job), out_(outcome), p_(*job.parameters) {
    for (int64_t sm = 0; sm < job.sms; ++sm) sms_.emplace_back(p_, job.array_count + 1);
    tokens_.resize(job.token_count);
    for (int64_t token = 0; token < job.token_count; ++token)
      tokens_[token].expected = job.expected[token];
    warps_.resize(job.ctas * job.warps_per_cta);
    const int32_t* blocks = job.blocks;
    const int64_t* figures = job.figures;
    for (size_t warp = 0; warp < warps_.size(); ++warp) {
      spans_.push_back({blocks, size_t(job.sizes[2 * warp]), figures});
      blocks += job.sizes[2 * warp];
      figures += job.sizes[2 * warp + 1];
    }
    groups_.resize(job.ctas * groups_per_cta());
    alive_.assign(job.ctas, int(job.warps_per_cta));
    queues_.resize(job.sms);
    residents_.resize(job.sms * kSubcores);
    issued_.resize(job.sms);
    placed_.resize(job.sms);
    begun_.resize(job.sms);
    for (int64_t cta = 0; cta < job.ctas; ++cta) queues_[job.sm_of[cta]].push_back(int(cta));
  }

  // 0: done; 1: nobody can go on; 2: past the limit.
  int run() {
    for (int64_t sm = 0; sm < job_.sms; ++sm)
      for (int64_t slot = 0; slot < job_.slots; ++slot) start(sm, 0, -1);
    while (left_ > 0) {
      double next = kNever;
      bool any = false;
      for (int64_t place = 0; place < job_.sms * kSubcores; ++place)
        any |= step(int(place), &next);
      if (any) {
        now_ += 1;
      } else {
        if (next == kNever) return 1;
        now_ = std::max(now_ + 1, std::ceil(next));
      }
      if (now_ > job_.limit) return 2;
    }
    report();
    if (out_.path) walk();
    return 0;
  }

 private:
  void start(int64_t sm, double when, int64_t cause) {
    if (queues_[sm].empty()) return;
    const int cta = queues_[sm].front();
    queues_[sm].erase(queues_[sm].begin());
    when = std::max(when, begun_[sm]);
    begun_[sm] = when + p_.launch_interval;
    ++left_;
    for (int64_t index = 0; index < job_.warps_per_cta; ++index) {
      const int number = int(cta * job_.warps_per_cta + index);
      Warp& warp = warps_[number];
      warp.stream = &spans_[index * job_.ctas + cta];
      warp.sm = &sms_[sm];
      warp.cta = cta;
      warp.subcore = int(placed_[sm]++ % kSubcores);
      warp.ended = false;
      warp.issue = warp.before = when;
      warp.cause = cause;
      residents_[sm * kSubcores + warp.subcore].push_back(number);
      if (!next_block(warp)) {
        end(warp, number);
        continue;
      }
      reckon(warp);
    }
  }

  // Whether there is one; skips what is not of the card.
  bool next_block(Warp& warp) {
    while (true) {
      while (warp.at == warp.last) {
        if (warp.block == warp.stream->count) return false;
        const int first = warp.stream->blocks[warp.block++];
        if (warp.last && first != warp.last) {
          warp.issue += p_.branch;
          warp.held = kBranching;
        }
        warp.at = first;
        warp.last = job_.last_of[first];
      }
      if (job_.code[warp.at].kind != Kind::kSkip) return true;
      ++warp.at;
    }
  }

  // When a warp can issue as far as its own waits go.
  void reckon(Warp& warp) {
    warp.throttle = kNotSelected;
    warp.ready = warp.issue;
    if (warp.tokens) {
      warp.ready = kNever;
      return;
    }
    const int wait = job_.code[warp.at].wait;
    for (int board = 0; board < kBoards; ++board)
      if (wait >> board & 1)
        warp.ready = std::max(warp.ready,
                              warp.boards[board].pending ? kNever : warp.boards[board].free);
  }

  bool step(int place, double* next) {
    Sm& sm = sms_[place / kSubcores];
    Subcore& subcore = sm.subcores[place % kSubcores];
    auto& residents = residents_[place];
    int chosen = -1;
    // The one that issued in the cycle before once more if it can, or else who has waited longest.
    const int last = subcore.last;
    if (last >= 0 && warps_[last].before == now_ - 1 && can(warps_[last], subcore, next)) {
      chosen = last;
    } else {
      double before = kNever;
      for (size_t at = residents.size(); at-- > 0;) {
        const double since = warps_[residents[at]].before;
        if (since < before && can(warps_[residents[at]], subcore, next)) {
          before = since;
          chosen = residents[at];
        }
      }
    }
    if (chosen < 0) return false;
    if (multiplies(chosen)) {
      // Of two that wait for the tensor cores' queue, the one whose wgmma is the last in it.
      const int same = subcore.multiplier;
      if (same >= 0 && same != chosen && multiplies(same) && can(warps_[same], subcore, next))
        chosen = same;
      subcore.multiplier = chosen;
    }
    subcore.last = chosen;
    issued_[place / kSubcores] += 1;
    issue(chosen, sm, subcore);
    return true;
  }

  bool can(Warp& warp, Subcore& subcore, double* next) {
    if (warp.ended) return false;
    if (warp.ready > now_) {
      *next = std::min(*next, warp.ready);
      return false;
    }
    const Instruction& ins = job_.code[warp.at];
    if (!meets(warp, ins, subcore, next)) return false;
    if (reads_vectors(ins) && subcore.multiplying > now_ && subcore.port > now_) {
      *next = std::min(*next, subcore.port);
      warp.throttle = kPipe;
      return false;
    }
    if (uses_queue(ins.kind) && Subcore::is_full(subcore.waiting, now_, p_.queue_depth)) {
      *next = std::min(*next, *std::min_element(subcore.waiting.begin(), subcore.waiting.end()));
      warp.throttle = kMio;
      return false;
    }
    if (is_global(ins.kind) && Subcore::is_full(subcore.accesses, now_, p_.global_depth)) {
      *next = std::min(*next, *std::min_element(subcore.accesses.begin(), subcore.accesses.end()));
      warp.throttle = kLg;
      return false;
    }
    if (ins.kind == Kind::kFixed && ins.pipe >= 0) {
      double free = subcore.pipes[ins.pipe].free;
      if (ins.second >= 0) free = std::min(free, subcore.pipes[ins.second].free);
      if (free >= now_ + 1) {
        *next = std::min(*next, free);
        warp.throttle = kPipe;
        return false;
      }
    }
    return true;
  }

  // Whether a product, or a wait for one, need not wait for other warps of its warpgroup or for the
  // queue of the tensor cores.
  bool meets(Warp& warp, const Instruction& ins, Subcore& subcore, double* next) {
    bool ready = true;
    if (ins.kind == Kind::kMatrix) {
      for (int64_t arrived : group_of(warp).arrived) ready &= arrived >= warp.arrived;
      if (ready && !rank(warp) && Subcore::is_full(subcore.queued, now_, p_.gmma_depth)) {
        ready = false;
        *next = std::min(*next, *std::min_element(subcore.queued.begin(), subcore.queued.end()));
      }
      if (!ready) warp.throttle = kGmma;
    } else if (ins.kind == Kind::kMatrixWait) {
      ready = int64_t(group_of(warp).done.size()) >= warp.committed - ins.extra;
      if (!ready) warp.throttle = kBarrier;
    }
    return ready;
  }

  bool multiplies(int number) const {
    const Warp& warp = warps_[number];
    return !warp.ended && job_.code[warp.at].kind == Kind::kMatrix;
  }

  int64_t groups_per_cta() const { return (job_.warps_per_cta + 3) / 4; }
  int64_t place(const Warp& warp) const { return (&warp - warps_.data()) % job_.warps_per_cta; }
  int64_t rank(const Warp& warp) const { return place(warp) % 4; }
  Warpgroup& group_of(const Warp& warp) {
    return groups_[warp.cta * groups_per_cta() + place(warp) / 4];
  }

  static bool reads_vectors(const Instruction& ins) {
    if (ins.kind == Kind::kFixed) return is_shared(ins.pipe);
    return ins.kind == Kind::kQueued || (ins.kind >= Kind::kShared && ins.kind <= Kind::kCopy);
  }
  static bool is_shared(int pipe) { return pipe >= kFirstShared && pipe <= kLastShared; }

  static bool uses_queue(Kind kind) {
    return (kind >= Kind::kQueued && kind <= Kind::kCopy) || kind == Kind::kArrive;
  }

  static bool is_global(Kind kind) { return kind >= Kind::kLoad && kind <= Kind::kCopy; }

  void account(Warp& warp) {
    int64_t* reasons = out_.reasons + warp.at * int64_t(kReasons);
    const Instruction& ins = job_.code[warp.at];
    const double own = std::max(warp.before, std::min(warp.issue, now_));
    reasons[warp.held] += std::max(0.0, own - warp.before - 1);
    double ready = own;
    Reason why = warp.held;
    int64_t cause = warp.cause;
    for (int board = 0; board < kBoards; ++board)
      if (ins.wait >> board & 1 && warp.boards[board].free > ready) {
        ready = std::min(now_, warp.boards[board].free);
        why = warp.boards[board].reason;
        cause = warp.boards[board].cause;
      }
    reasons[why] += ready - own;
    const double throttled = std::max(0.0, now_ - std::max(ready, warp.before + 1));
    reasons[warp.throttle] += throttled;
    reasons[kSelected] += 1;
    if (out_.traced && warp.cta == 0 && *out_.traced_count < out_.traced_limit) {
      const double held = own - warp.before - 1;
      const Reason longest = held >= ready - own && held >= throttled ? warp.held
                             : ready - own >= throttled               ? why
                                                                      : warp.throttle;
      out_.traced[(*out_.traced_count)++] = {int32_t(&warp - warps_.data()), warp.at,
                                             int32_t(longest), 0, warp.before, now_};
    }
    note(warp, why, cause, ready);
    warp.before = now_;
    warp.held = kWait;
    warp.cause = event_;
  }

  void note(const Warp& warp, Reason why, int64_t cause, double ready) {
    if (!out_.path || overflowed_) return;
    if (events_.size() == kEvents) {
      overflowed_ = true;
      event_ = -1;
      return;
    }
    event_ = int64_t(events_.size());
    events_.push_back({int32_t((&warp - warps_.data()) % job_.warps_per_cta), warp.at, int32_t(why),
                       int32_t(warp.throttle), cause, ready, now_});
  }

  // From the last event back to the first: each was ready when its cause let it be.
  void walk() {
    *out_.path_count = overflowed_ ? -1 : 0;
    if (overflowed_) return;
    std::map<std::array<int32_t, 4>, double> steps;
    for (int64_t at = event_; at >= 0; at = events_[at].cause) {
      const Event& event = events_[at];
      const double since = event.cause < 0 ? 0 : events_[event.cause].at;
      const double ready = std::max(since, std::min(event.ready, event.at));
      const int producer = event.cause < 0 ? -1 : events_[event.cause].instruction;
      if (ready > since)
        steps[{event.warp, event.instruction, producer, event.reason}] += ready - since;
      if (event.at > ready)
        steps[{event.warp, event.instruction, event.instruction, event.throttle}] +=
            event.at - ready;
    }
    for (const auto& [key, cycles] : steps)
      if (*out_.path_count < out_.path_limit)
        out_.path[(*out_.path_count)++] = {key[0], key[1], key[2], key[3], cycles};
  }

  void issue(int number, Sm& sm, Subcore& subcore) {
    Warp& warp = warps_[number];
    account(warp);
    const Instruction& ins = job_.code[warp.at];
    warp.issue = now_ + std::max(1, ins.stall);
    execute(warp, number, ins, sm, subcore);
    ++warp.at;
    if (ins.kind == Kind::kExit && warp.block == warp.stream->count) {
      end(warp, number);
      return;
    }
    if (!next_block(warp)) {
      end(warp, number);
      return;
    }
    reckon(warp);
  }

  void end(Warp& warp, int number) {
    warp.ended = true;
    const int64_t sm = job_.sm_of[warp.cta];
    auto& residents = residents_[sm * kSubcores + warp.subcore];
    residents.erase(std::find(residents.begin(), residents.end(), number));
    Subcore& subcore = warp.sm->subcores[warp.subcore];
    if (subcore.last == number) subcore.last = -1;
    if (--alive_[warp.cta]) return;
    --left_;
    out_.ends[warp.cta] = now_;
    start(sm, now_ + p_.turnover, event_);
  }

  int64_t figure(Warp& warp) { return warp.stream->figures[warp.figure++]; }

  void release(Warp& warp, int board, double when, Reason reason, int64_t cause) {
    if (board >= kBoards || board < 0) return;
    if (when > warp.boards[board].free) {
      warp.boards[board].free = when;
      warp.boards[board].reason = reason;
      warp.boards[board].cause = cause;
    }
  }

  // When the queue of its sub-core passes an instruction on, of so many wavefronts: between a
  // sub-core and the data stage there is half of the stage's width.
  double queue(Subcore& subcore, double wavefronts = 0) {
    const double cycles = std::max(p_.queue_interval, p_.return_interval * wavefronts);
    const double start = subcore.queue.take(now_ + 1, cycles);
    subcore.waiting.push_back(start);
    return start;
  }

  // A pipe takes longer while a wgmma reads and writes the sub-core's registers.
  double beside(const Subcore& subcore, int pipe) const {
    return is_shared(pipe) && subcore.multiplying > now_ ? p_.beside_gmma : 0;
  }

  void execute(Warp& warp, int number, const Instruction& ins, Sm& sm, Subcore& subcore) {
    double done = now_ + ins.latency, read = done;
    Reason reason = kShort;
    if (subcore.multiplying > now_ && reads_vectors(ins)) subcore.port = now_ + p_.gmma_port;
    switch (ins.kind) {
      case Kind::kSkip:
        break;
      case Kind::kFixed: {
        if (ins.pipe < 0) break;
        int pipe = ins.pipe;
        if (ins.second >= 0 && subcore.pipes[ins.second].free < subcore.pipes[pipe].free)
          pipe = ins.second;
        subcore.pipes[pipe].take(now_, ins.interval + beside(subcore, pipe));
        if (pipe == kControlPipe && ins.latency) {
          warp.issue += ins.latency;
          warp.held = kBranching;
        }
        break;
      }
      case Kind::kQueued: {
        const double passed = queue(subcore);
        const double interval = ins.interval + beside(subcore, ins.pipe);
        const double start = ins.pipe < 0 ? passed : subcore.pipes[ins.pipe].take(passed, interval);
        if (ins.extra) sm.data.take(start, ins.extra);
        subcore.waiting.back() = start;
        done = start + ins.latency;
        read = start + p_.read_latency;
        break;
      }
      case Kind::kConstant: {
        const double words = ins.extra ? std::max<int64_t>(figure(warp), 1) : 1;
        const double start = sm.constants.take(queue(subcore), words * p_.constant_interval);
        subcore.waiting.back() = start;
        done = start + (words - 1) * p_.constant_latency + ins.latency;
        read = start + p_.read_latency;
        break;
      }
      case Kind::kShared: {
        const int64_t wavefronts = figure(warp);
        const double cycles = std::max<int64_t>(wavefronts, 1);
        const double passed = queue(subcore, std::max<double>(cycles, ins.extra));
        const double start = sm.data.take(passed, sm.beside(passed, cycles));
        subcore.waiting.back() = start;
        done = start + cycles - 1 + p_.shared_latency;
        read = (p_.early_read ? passed : start) + cycles - 1 + p_.read_latency;
        break;
      }
      case Kind::kLoad:
      case Kind::kAtomic:
      case Kind::kStore:
        done = access(warp, ins, sm, subcore, &read);
        reason = kLong;
        break;
      case Kind::kCopy: {
        const int64_t wavefronts = figure(warp);
        done = access(warp, ins, sm, subcore, &read) ;
        sm.data.take(now_, sm.beside(now_, std::max<int64_t>(wavefronts, 0)));
        warp.copying = std::max(warp.copying, done);
        warp.copied = event_;
        done = read;
        reason = kLong;
        break;
      }
      case Kind::kSync:
      case Kind::kTest:
        synchronise(warp, number, ins);
        return;
      case Kind::kArrive: {
        const double start = queue(subcore);
        for (int64_t count = figure(warp); count > 0; --count)
          signal(figure(warp), start + p_.arrive_latency, event_);
        figure(warp);
        break;
      }
      case Kind::kBulkLoad: {
        const double bytes = figure(warp);
        const int64_t array = figure(warp);
        double landed = now_;
        if (bytes > 0) {
          const double cycles = bytes / p_.tma_rate;
          const double start = sm.tma.take(subcore.bulk.take(now_, p_.tma_interval), cycles);
          const double from_dram = array < 0 ? 0 : job_.arrays[array].from_dram;
          const double together = array < 0 ? 1 : job_.arrays[array].together;
          const int number = int(array < 0 ? job_.array_count : array);
          landed = sm.fetch(start, bytes, bytes, number, from_dram, together);
          if (array >= 0) sm.box[array] = bytes;
          landed = std::max(landed, start + cycles) + p_.tma_latency;
          sm.copy(start, bytes);
        }
        for (int64_t count = figure(warp); count > 0; --count) signal(figure(warp), landed, event_);
        break;
      }
      case Kind::kBulkStore: {
        const double bytes = figure(warp);
        const int64_t array = figure(warp);
        if (bytes <= 0) break;
        const double cycles = bytes / p_.tma_rate;
        const double start = sm.tma.take(subcore.bulk.take(now_, p_.tma_interval), cycles);
        sm.copy(start, bytes);
        const double taken = put(sm, start + cycles, bytes, int(array));
        warp.copying = std::max(warp.copying, taken + p_.tma_latency);
        warp.copied = event_;
        break;
      }
      case Kind::kPrefetch: {
        const int64_t array = figure(warp);
        if (array >= 0) sm.prefetch(now_, int(array), job_.arrays[array].prefetched);
        break;
      }
      case Kind::kCommit:
        warp.copies.push_back({warp.copying, warp.copied});
        break;
      case Kind::kGroups:
        if (int64_t(warp.copies.size()) > ins.extra)
          hold(warp, warp.copies[warp.copies.size() - 1 - ins.extra], kLong);
        break;
      case Kind::kMatrix: {
        warp.committed += ins.extra;
        if (rank(warp)) break;
        double end = 0;
        for (Subcore& each : sm.subcores) {
          end = each.pipes[ins.pipe].take(now_, ins.interval) + ins.interval;
          each.multiplying = end;
        }
        subcore.queued.push_back(end - ins.interval);
        sm.read_operands(end, ins.latency / ins.interval);
        if (ins.extra) group_of(warp).done.push_back({end + p_.gmma_tail, event_});
        break;
      }
      case Kind::kMatrixArrive:
        group_of(warp).arrived[rank(warp)] = ++warp.arrived;
        break;
      case Kind::kMatrixWait:
        if (warp.committed > ins.extra)  // a wait for a barrier, as ncu counts it on an H200
          hold(warp, group_of(warp).done[warp.committed - ins.extra - 1], kBarrier);
        break;
      case Kind::kProduct:
        multiply(warp, ins, sm);
        break;
      case Kind::kSignal:
        // What the waiter sees of it is part of the tail.
        for (int64_t count = figure(warp); count > 0; --count)
          signal(figure(warp), std::max(now_, warp.multiplying), multiplied(warp));
        break;
      case Kind::kTensorMemory: {
        const double start = subcore.tensor_memory.take(now_, ins.interval);
        done = start + ins.interval + p_.tmem_latency;
        read = start + ins.interval;
        break;
      }
      case Kind::kExit:
        break;
    }
    release(warp, ins.wbar, done, reason, event_);
    release(warp, ins.rbar, read, reason, event_);
  }

  // A tcgen05.mma of a row of 32 bytes of A and of B: two columns a cycle, four where a CTA of a
  // pair has 64 rows, and no faster than shared memory gives its operands.
  void multiply(Warp& warp, const Instruction& ins, Sm& sm) {
    const double rows = figure(warp), columns = figure(warp);
    if (rows <= 0) return;
    const bool pair = ins.extra & kPair;
    const double group = pair ? 2 : 1, own = rows / group;
    const double of_a = ins.extra & kFromTensorMemory ? 0 : own;
    const double operands = kRow * (of_a + columns / group) / kLine;
    const double cycles = std::max(pair && own == 64 ? columns / 4 : columns / 2, operands);
    Sm& peer = pair ? sms_[job_.sm_of[warp.cta ^ 1]] : sm;
    const double begin = std::max(sm.multiplying, peer.multiplying);
    const double start = std::max(now_, begin);
    sm.multiply(start, cycles, operands);
    if (pair) peer.multiply(start, cycles, operands);
    const double tail = pair ? p_.pair_tail : p_.product_tail;
    const double less = ins.extra & kFromTensorMemory ? p_.tmem_operand : 0;
    warp.multiplying = std::max(warp.multiplying, start + cycles + tail - less - p_.wake_latency);
    warp.multiplied = event_;
  }

  // What a commit signals follows from the last product, or else from the commit.
  int64_t multiplied(const Warp& warp) const {
    return warp.multiplying > now_ ? warp.multiplied : event_;
  }

  // Until at most `allowed` of the groups are pending.
  void hold(Warp& warp, const Due& last, Reason reason) {
    if (last.time > warp.issue) {
      warp.issue = last.time;
      warp.cause = last.cause;
      warp.held = reason;
    }
  }

  // Of global memory: when its last sector is there, or L2 has taken it.
  double access(Warp& warp, const Instruction& ins, Sm& sm, Subcore& subcore, double* read) {
    const int64_t lines = figure(warp);
    const double passed = queue(subcore, std::max<double>(1, lines));
    int lanes_bytes = 0;
    double done = passed + p_.l1_latency;
    // A line of tags per cycle, and 128 bytes of data; of a store, what a line takes beyond that.
    const double of_line = ins.kind == Kind::kStore ? 1 + p_.store_extra : 1;
    const double cycles = std::max<double>(1, lines * of_line);
    // Beside a wgmma, LDG.128 that hit L1 take 2.2 to 2.7 times as long on an H100, fills of a line
    // for each lane 2.1 to 2.4 times; stores do not. Of a tcgen05.mma, nobody has measured it.
    const bool held = ins.kind == Kind::kLoad && subcore.multiplying > passed;
    const double staged = held ? sm.beside(passed, cycles) : cycles;
    const double start = sm.data.take(passed, staged);
    subcore.waiting.back() = start;
    subcore.accesses.push_back(start);
    for (int64_t at = 0; at < lines; ++at) {
      const int64_t line = figure(warp);
      const int sectors = int(figure(warp));
      const int array = array_of(line);
      lanes_bytes += kSector * __builtin_popcount(sectors);
      const double asked = start + at;
      if (ins.kind == Kind::kAtomic) {
        const int64_t turns = figure(warp), whole = figure(warp);
        const Atomic what{sectors, turns, whole, ins.interval, double(ins.latency), ins.extra != 0};
        const double taken = sm.combine(asked, line, what, who(warp));
        done = std::max(done, taken + p_.l2_latency);
      }
      if (ins.kind == Kind::kStore) {
        const double taken = put(sm, asked, kSector * __builtin_popcount(sectors), array);
        // Stores wait for room before L2, and so does what comes after them.
        sm.data.free = std::max(sm.data.free, taken - p_.write_buffer);
        done = std::max(done, taken);
        // The line is in L1 from now on, with what was written.
        if (L1::Line* kept = sm.l1.touch(line)) {
          kept->arrive(sectors & ~kept->sectors, asked);
          kept->sectors |= sectors;
        }
        continue;
      }
      const bool cached = ins.kind != Kind::kAtomic && !ins.extra;
      L1::Line* kept = cached ? sm.l1.touch(line) : nullptr;
      const int missing = kept ? sectors & ~kept->sectors : sectors;
      double there = asked + p_.l1_latency;
      if (kept) there = std::max(there, kept->last(sectors & kept->sectors));
      if (missing) {
        const double bytes = kSector * __builtin_popcount(missing);
        const double from_dram = array < 0 ? 0 : job_.arrays[array].from_dram;
        const double first = kSector * sm.new_sectors(line, missing);
        const double fetched =
            sm.fetch(asked, bytes, first, int(array < 0 ? job_.array_count : array), from_dram);
        if (kept) {
          kept->arrive(missing, fetched);
          kept->sectors |= missing;
        }
        there = missing == sectors ? fetched : std::max(there, fetched);
      }
      done = std::max(done, there);
    }
    const double returning = std::max(0.0, lanes_bytes / double(kLine) - lines);
    if (returning > 0) sm.data.take(start, held ? sm.beside(start, returning) : returning);
    *read = start + lines + p_.read_latency;
    return done + returning;
  }

  // Whose an atomic is: its CTA's. Where an SM has one CTA only, what its warps share the CTAs of
  // other SMs are taken to share, too.
  int64_t who(const Warp& warp) const {
    return job_.ctas > job_.sms ? warp.cta : int64_t(&warp - warps_.data());
  }

  double put(Sm& sm, double now, double bytes, int array) {
    if (array < 0) return sm.put(now, bytes, int(job_.array_count), 0);
    return sm.put(now, bytes, array, job_.arrays[array].written);
  }

  int array_of(int64_t line) const {
    for (int64_t array = 0; array < job_.array_count; ++array)
      if (line >= job_.arrays[array].first && line < job_.arrays[array].end) return int(array);
    return -1;
  }

  void synchronise(Warp& warp, int number, const Instruction& ins) {
    const bool holds = ins.kind == Kind::kSync || ins.wbar >= kBoards;
    // Waits first: what is signalled may be what is waited for.
    const size_t first = warp.figure;
    const int64_t signals = warp.stream->figures[first];
    warp.figure = first + 1 + signals;
    const int64_t waits = figure(warp);
    if (!holds) release(warp, ins.wbar, now_ + p_.test_latency, kLong, event_);
    for (int64_t at = 0; at < waits; ++at) {
      Token& token = tokens_[figure(warp)];
      if (token.signalled >= token.expected) {
        reach(warp, holds ? -1 : ins.wbar, token);
      } else {
        token.waiters.emplace_back(number, holds ? -1 : ins.wbar);
        ++(holds ? warp.tokens : warp.boards[ins.wbar].pending);
      }
    }
    for (int64_t at = 0; at < signals; ++at) {
      const int64_t token = warp.stream->figures[first + 1 + at];
      signal(token, now_ + p_.barrier_latency + p_.barrier_per_warp * tokens_[token].expected,
             event_);
    }
  }

  // What the warp waited for is there.
  void reach(Warp& warp, int board, const Token& token) {
    if (board >= 0) {
      release(warp, board, token.time + p_.wake_latency, kLong, token.cause);
    } else if (token.time > warp.issue) {
      warp.issue = token.time;
      warp.held = kBarrier;
      warp.cause = token.cause;
    }
  }

  void signal(int64_t number, double when, int64_t cause) {
    Token& token = tokens_[number];
    if (when >= token.time) {
      token.time = when;
      token.cause = cause;
    }
    if (++token.signalled != token.expected) return;
    for (const auto& [place, board] : token.waiters) {
      Warp& warp = warps_[place];
      --(board < 0 ? warp.tokens : warp.boards[board].pending);
      reach(warp, board, token);
      if (!warp.ended && warp.stream) reckon(warp);
    }
    token.waiters.clear();
  }

  void report() {
    for (int64_t number = 0; number < job_.sms; ++number) {
      Sm& sm = sms_[number];
      double* busy = out_.busy + number * kUnits;
      busy[kIssue] = issued_[number] / kSubcores;
      for (const Subcore& subcore : sm.subcores)
        for (int pipe = 0; pipe < kPipes; ++pipe)
          busy[kFma + pipe] += subcore.pipes[pipe].busy / kSubcores;
      busy[kData] = sm.data.busy;
      busy[kL2Reads] = sm.l2.busy;
      busy[kL2Writes] = std::max(sm.l2_writes.busy, sm.slices_busy());
      busy[kDram] = sm.dram.busy;
      busy[kTma] = sm.tma.busy;
      for (int64_t array = 0; array < job_.array_count; ++array) {
        out_.requested[array] += sm.requested[array];
        out_.written[array] += sm.written[array];
        out_.prefetched[array] += sm.prefetched[array];
      }
      out_.drained[number] = sm.drained();
    }
  }

  const Job& job_;
  const Outcome& out_;
  const Parameters& p_;
  std::vector<Sm> sms_;
  std::vector<Token> tokens_;
  std::vector<Warp> warps_;
  std::vector<Warpgroup> groups_;
  std::vector<Span> spans_;                  // by place
  std::vector<int> alive_;
  std::vector<std::vector<int>> queues_;     // CTAs that have not started, by SM
  std::vector<std::vector<int>> residents_;  // warps, the youngest last, by sub-core
  std::vector<int64_t> issued_;
  double now_ = 0;
  std::vector<int64_t> placed_;  // warps so far, by SM
  std::vector<double> begun_;    // when the next CTA may begin, by SM
  int64_t left_ = 0;
  std::vector<Event> events_;
  int64_t event_ = -1;  // that issues now
  bool overflowed_ = false;
};

}  // namespace
}  // namespace kx::timing

extern "C" int kx_replay(const kx::timing::Job* job, const kx::timing::Outcome* outcome) {
  return kx::timing::Replay(*job, *outcome).run();
}
