import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;

/**
 * The work of {@code examples/load} by the official Java client: the same options, bodies and line
 * of JSON.
 *
 * <p>It warms up with nothing: the compilation of a fresh JVM is in its figures. A consumption ends
 * with the last handled message, since this client tells nobody about its acknowledgements.
 */
public final class Load {
    private static final long MARK = 0x6c6f616400010203L;
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();

    private final Map<String, String> options;
    private final String topic;
    private final int count;
    private final int concurrency;
    private final long[] nanos;
    private final AtomicInteger next = new AtomicInteger();

    private Load(Map<String, String> options) {
        this.options = options;
        topic = options.get("--topic");
        count = Integer.parseInt(options.get("--count"));
        concurrency = Integer.parseInt(options.get("--concurrency"));
        nanos = new long[count];
    }

    public static void main(String[] words) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (int i = 1; i + 1 < words.length; i += 2) {
            options.put(words[i], words[i + 1]);
        }
        Load load = new Load(options);
        if (words[0].equals("send")) {
            load.send();
        } else {
            load.consume();
        }
        // Its threads and their time-outs are none of the measured work.
        System.exit(0);
    }

    private ClientConfiguration configuration() {
        return ClientConfiguration.newBuilder()
            .setEndpoints(options.get("--endpoints"))
            .enableSsl(false)
            .build();
    }

    private void send() throws Exception {
        int size = Integer.parseInt(options.get("--size"));
        Producer producer = PROVIDER.newProducerBuilder()
            .setClientConfiguration(configuration())
            .setTopics(topic)
            .build();
        Semaphore room = new Semaphore(concurrency);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        Span span = new Span();
        for (int i = 0; i < count; i++) {
            room.acquire();
            long called = System.nanoTime();
            var message = PROVIDER.newMessageBuilder().setTopic(topic).setBody(body(size)).build();
            producer.sendAsync(message).whenComplete((receipt, error) -> {
                if (error != null) {
                    failure.set(error);
                }
                record(System.nanoTime() - called);
                room.release();
            });
        }
        room.acquire(concurrency);
        if (failure.get() != null) {
            throw new IllegalStateException(failure.get());
        }
        span.print("java-send");
    }

    private void consume() throws Exception {
        CountDownLatch left = new CountDownLatch(count);
        PushConsumer consumer = PROVIDER.newPushConsumerBuilder()
            .setClientConfiguration(configuration())
            .setConsumerGroup(options.get("--group"))
            .setSubscriptionExpressions(Collections.singletonMap(topic, FilterExpression.SUB_ALL))
            .setConsumptionThreadCount(concurrency)
            .setMessageListener(message -> {
                record(age(message));
                left.countDown();
                return ConsumeResult.SUCCESS;
            })
            .build();
        Span span = new Span();
        left.await();
        span.print("java-consume");
    }

    private void record(long latency) {
        int index = next.getAndIncrement();
        if (index < count) {
            nanos[index] = latency;
        }
    }

    private static byte[] body(int size) {
        byte[] body = new byte[size];
        Arrays.fill(body, (byte) 'x');
        if (size >= 16) {
            ByteBuffer.wrap(body).putLong(MARK).putLong(sinceEpoch());
        }
        return body;
    }

    private static long age(MessageView message) {
        ByteBuffer body = message.getBody();
        boolean stamped = body.remaining() >= 16 && body.getLong() == MARK;
        long made = stamped ? body.getLong() : message.getBornTimestamp() * 1_000_000;
        return Math.max(0, sinceEpoch() - made);
    }

    private static long sinceEpoch() {
        return Duration.between(Instant.EPOCH, Instant.now()).toNanos();
    }

    /** Time and processor time of this process. */
    private final class Span {
        private final long started = System.nanoTime();
        private final double cpu = cpu();

        private void print(String mode) throws Exception {
            double seconds = (System.nanoTime() - started) / 1e9;
            double used = cpu() - cpu;
            Arrays.sort(nanos);
            System.out.printf(Locale.ROOT,
                "{\"mode\":\"%s\",\"messages\":%d,\"seconds\":%.3f,\"messages_per_second\":%.1f,"
                    + "\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"cpu_seconds\":%.2f,\"peak_rss_kib\":%d}%n",
                mode, count, seconds, count / seconds, percentile(50), percentile(99), used, peak());
        }

        private double percentile(int percent) {
            int rank = Math.max(1, (int) (((long) count * percent + 99) / 100));
            return nanos[rank - 1] / 1e6;
        }

        private static double cpu() {
            return ProcessHandle.current().info().totalCpuDuration().orElseThrow().toNanos() / 1e9;
        }

        private static long peak() throws Exception {
            for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
                if (line.startsWith("VmHWM:")) {
                    return Long.parseLong(line.replaceAll("\\D", ""));
                }
            }
            throw new IllegalStateException("no VmHWM in /proc/self/status");
        }
    }
}
