// Counts how often each word was given, in a store that outlives the program.  KvExample FILE WORD...
import io.spillway.KvStore;
import java.nio.file.Files;
import java.nio.file.Path;

public class KvExample {
  public static void main(String[] arguments) throws Exception {
    if (arguments.length == 0) throw new IllegalArgumentException("usage: KvExample FILE WORD...");
    if (Files.notExists(Path.of(arguments[0]))) KvStore.make(arguments[0], 64 << 20);
    try (KvStore store = KvStore.open(arguments[0])) {
      for (int i = 1; i < arguments.length; ++i) {
        byte[] word = arguments[i].getBytes();
        byte[] before = store.get(word);
        int count = before == null ? 1 : Integer.parseInt(new String(before)) + 1;
        store.put(word, Integer.toString(count).getBytes());
        System.out.println(arguments[i] + " " + count);
      }
    }
  }
}
