// SPDX-License-Identifier: BSD-2-Clause
// C++ names in stacks: a method of a template in a namespace, called through an interface.
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <memory>
#include <vector>

namespace shapes
{

class Shape
{
      public:
	virtual ~Shape() = default;
	virtual uint64_t area(const std::vector<int> &lengths) const = 0;
};

template <typename T> class Polygon : public Shape
{
      public:
	__attribute__((noinline)) uint64_t area(const std::vector<int> &lengths) const override
	{
		volatile T sum = 0;
		timespec t;

		for (int turn = 0; turn < 100; turn++)
			for (int i = 0; i < 100000; i++)
				sum = static_cast<T>(sum + lengths[i % lengths.size()]);
		clock_gettime(CLOCK_MONOTONIC, &t);
		return static_cast<uint64_t>(sum) + static_cast<uint64_t>(t.tv_nsec);
	}
};

} // namespace shapes

int main()
{
	std::unique_ptr<shapes::Shape> shape = std::make_unique<shapes::Polygon<unsigned long>>();
	std::vector<int> lengths = { 3, 4, 5 };
	uint64_t sum = 0;
	char line[64];

	setvbuf(stdout, nullptr, _IOLBF, 0);
	printf("ready\n");
	if (!fgets(line, sizeof(line), stdin))
		return 9;
	for (timespec t = {}, begin = {}; t.tv_sec - begin.tv_sec < 2;) {
		sum += shape->area(lengths);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	}
	printf("done %lu\n", static_cast<unsigned long>(sum));
	return 0;
}
