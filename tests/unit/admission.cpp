// Sessions and the host tier: who gets in, and what is charged.
#include "libcore/load/admission.h"

#include <doctest/doctest.h>

using namespace hf;

namespace {

constexpr ModelFootprint kModel{
    .weight_bytes = 1000, .session_bytes = 50, .kv_bytes_per_token = 2, .pinned_bytes = 300};

AdmissionController controller(uint64_t budget, uint32_t sessions = 9) {
    return {kModel, budget, 400, sessions};
}

}  // namespace

TEST_CASE("admission: the edge itself is refused, one byte below it is not") {
    const uint64_t need = 1000 + 50 + 2 * 100;
    for (const uint64_t budget : {need - 1, need, need + 1}) {
        AdmissionController c = controller(budget);
        const Admission a = c.admit(1, 100);
        CHECK(a.ok() == (budget > need));
        CHECK(c.used() == (budget > need ? need : 0));
        if (a.ok()) continue;
        CHECK(a.verdict == Verdict::would_exceed);
        CHECK(a.need == need);
        CHECK(a.available == budget);
    }
}

TEST_CASE("admission: weights are charged once, and nothing when no session is there") {
    AdmissionController c = controller(10000);
    CHECK(c.used() == 0);
    CHECK(c.admit(1, 10).ok());
    CHECK(c.used() == 1070);
    CHECK(c.admit(2, 0).ok());
    CHECK(c.used() == 1120);
    c.release(1);
    CHECK(c.used() == 1050);
    c.release(2);
    CHECK(c.used() == 0);
    CHECK(c.admit(1, 10).ok());  // its id is free again
    CHECK(c.used() == 1070);
}

TEST_CASE("admission: a refused session leaves no trace, and never gets less than it asked for") {
    AdmissionController c = controller(1200);
    CHECK(c.admit(1, 10).ok());
    const Admission a = c.admit(2, 40);
    CHECK(a.need == 130);
    CHECK(a.available == 130);
    CHECK(c.sessions() == 1);
    CHECK(c.used() == 1070);
    CHECK(c.admit(2, 39).ok());
}

TEST_CASE("admission: a need that does not fit 64 bits is refused") {
    for (const uint64_t tokens : {UINT64_MAX, UINT64_MAX / 2, UINT64_MAX / 2 - 100}) {
        AdmissionController c = controller(UINT64_MAX);
        CHECK(c.admit(1, tokens).verdict == Verdict::would_exceed);
        CHECK(c.used() == 0);
    }
    ModelFootprint model = kModel;
    model.weight_bytes = UINT64_MAX;
    CHECK_FALSE(AdmissionController(model, UINT64_MAX, 0, 1).admit(1, 0).ok());
}

TEST_CASE("admission: growth is judged by what is added, shrinking returns at once") {
    AdmissionController c = controller(1300);
    CHECK(c.admit(1, 100).ok());  // 1250
    const Admission edge = c.resize(1, 125);
    CHECK(edge.verdict == Verdict::would_exceed);
    CHECK(edge.need == 50);
    CHECK(edge.available == 50);
    CHECK(c.used() == 1250);
    CHECK(c.resize(1, 124).ok());
    CHECK(c.used() == 1298);
    CHECK(c.resize(1, 124).ok());
    CHECK(c.resize(1, 5).ok());
    CHECK(c.used() == 1060);
    CHECK(c.resize(1, UINT64_MAX).verdict == Verdict::would_exceed);
    c.release(1);
    CHECK(c.used() == 0);
}

TEST_CASE("admission: an unknown session is an error of its own to resize, and none to release") {
    AdmissionController c = controller(2000);
    CHECK(c.resize(7, 1).verdict == Verdict::unknown_session);
    c.release(7);
    CHECK(c.used() == 0);
    CHECK(Admission{Verdict::unknown_session, 0, 0}.text() == "there is no such session");
}

TEST_CASE("admission: a full pool is not a question of bytes") {
    AdmissionController c = controller(UINT64_MAX, 2);
    CHECK(c.admit(1, 1).ok());
    CHECK(c.admit(2, 1).ok());
    CHECK(c.admit(3, 1).verdict == Verdict::pool_full);
    c.release(1);
    CHECK(c.admit(3, 1).ok());
    CHECK(Admission{Verdict::pool_full, 0, 0}.text() == "all sessions are taken");
}

TEST_CASE("admission: numbers are shown in GiB") {
    CHECK(Admission{Verdict::would_exceed, 7ull << 29, 3ull << 30}.text() ==
          "3.50 GiB are needed, but 3.00 GiB are available");
}

TEST_CASE("host tier: it starts charged with what the model pins, and exactly full fits") {
    AdmissionController c = controller(2000);
    HostTier& tier = c.host_tier();
    CHECK(tier.used() == 300);
    CHECK_FALSE(tier.reserve(101));
    CHECK(tier.used() == 300);
    CHECK(tier.reserve(100));
    CHECK_FALSE(tier.reserve(1));
    tier.give_back(60);
    CHECK(tier.reserve(60));
    CHECK(tier.reserve(0));
    CHECK_FALSE(tier.reserve(UINT64_MAX));
    CHECK(tier.used() == 400);
}
