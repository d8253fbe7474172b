"""Changing the size and the look of grey images."""


def check_rectangular(image):
    """Return (height, width) of an image, or raise ValueError if rows differ in length."""
    widths = {len(row) for row in image}
    if len(widths) != 1:
        raise ValueError("rows have different lengths: %s" % sorted(widths))
    return len(image), widths.pop()


def crop(image, left, top, right, bottom):
    """Cut out a rectangle; the right and bottom bounds are excluded.

    Negative bounds count from the far side, as in slices. An empty result is an error.
    """
    cut = [row[left:right] for row in image[top:bottom]]
    if not cut or not cut[0]:
        raise ValueError("nothing left of a %d x %d image" % (len(image[0]), len(image)))
    return cut


def rotate(image, quarters=1):
    """Turn an image clockwise by a number of quarter turns."""
    turned = [list(row) for row in image]
    for _ in range(quarters % 4):
        turned = [list(row) for row in zip(*turned[::-1])]
    return turned


def pad(image, margin, value=0):
    """Put a frame of one value around an image."""
    _, width = check_rectangular(image)
    blank = [value] * (width + 2 * margin)
    side = [value] * margin
    return [blank[:] for _ in range(margin)] + [side + row + side for row in image] + [blank[:] for _ in range(margin)]


def resize(image, height, width):
    """Scale an image with bilinear interpolation.

    :param height: number of rows of the result
    :param width: number of columns of the result
    """
    old_height, old_width = check_rectangular(image)
    result = []
    for y in range(height):
        # Map pixel centres to pixel centres, and stay inside the image.
        source_y = min(max((y + 0.5) * old_height / height - 0.5, 0), old_height - 1)
        y0 = int(source_y)
        y1 = min(y0 + 1, old_height - 1)
        dy = source_y - y0
        row = []
        for x in range(width):
            source_x = min(max((x + 0.5) * old_width / width - 0.5, 0), old_width - 1)
            x0 = int(source_x)
            x1 = min(x0 + 1, old_width - 1)
            dx = source_x - x0
            above = image[y0][x0] * (1 - dx) + image[y0][x1] * dx
            below = image[y1][x0] * (1 - dx) + image[y1][x1] * dx
            row.append(int(round(above * (1 - dy) + below * dy)))
        result.append(row)
    return result


def convolve(image, kernel, divisor=None):
    """Filter an image with a small matrix of odd size; borders repeat the outermost pixels."""
    height, width = check_rectangular(image)
    size = len(kernel)
    if size % 2 == 0 or any(len(row) != size for row in kernel):
        raise ValueError("kernel must be square and of odd size")
    if divisor is None:
        divisor = sum(map(sum, kernel)) or 1
    reach = size // 2
    result = [[0] * width for _ in range(height)]
    for y in range(height):
        for x in range(width):
            total = 0
            for ky in range(size):
                for kx in range(size):
                    sy = min(max(y + ky - reach, 0), height - 1)
                    sx = min(max(x + kx - reach, 0), width - 1)
                    total += kernel[ky][kx] * image[sy][sx]
            result[y][x] = min(max(total // divisor, 0), 255)
    return result


def flood_fill(image, x, y, value):
    """Replace the connected area of equal pixels around a point.

    :return: the number of pixels that changed; the image is changed in place
    """
    height, width = check_rectangular(image)
    old = image[y][x]
    if old == value:
        return 0
    stack = [(x, y)]
    changed = 0
    while stack:
        x, y = stack.pop()
        if not (0 <= x < width and 0 <= y < height) or image[y][x] != old:
            continue
        image[y][x] = value
        changed += 1
        stack += [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)]
    return changed


def read_pgm(path):
    """Read an image in the plain (P2) or binary (P5) portable graymap format."""
    with open(path, "rb") as f:
        data = f.read()
    fields = []
    position = 0
    while len(fields) < 4:
        end = position
        while end < len(data) and not data[end:end + 1].isspace():
            end += 1
        if data[position:position + 1] == b"#":
            end = data.index(b"\n", position)
        elif end > position:
            fields.append(data[position:end])
        elif end >= len(data):
            raise ValueError("%s ends within its header" % path)
        position = end + 1
    magic, width, height = fields[0], int(fields[1]), int(fields[2])
    if magic == b"P5":
        values = list(data[position:position + width * height])
    elif magic == b"P2":
        values = [int(number) for number in data[position:].split()]
    else:
        raise ValueError("%s: not a PGM file: starts with %r" % (path, magic))
    if len(values) != width * height:
        raise ValueError("%s: %d pixels, expected %d x %d" % (path, len(values), width, height))
    return [values[row * width:(row + 1) * width] for row in range(height)]
