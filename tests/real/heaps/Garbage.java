import java.util.ArrayList;
import java.util.List;

public class Garbage {
	public static void main(String[] args) {
		List<byte[]> kept = new ArrayList<>();
		for (int i = 0; i < 400000; i++) {
			kept.add(new byte[8000]);
			if (kept.size() > 20000)
				kept.clear();
		}
		System.out.println("garbage made");
	}
}
