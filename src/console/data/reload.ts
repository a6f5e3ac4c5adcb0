/** Reloads the page when the console was built again. For development alone. */

const LOOK_MS = 1_000
const files = ['/assets/main.js', '/assets/console.css']

async function readBuild(): Promise<string> {
  const texts = files.map(async (file) => (await fetch(file, { cache: 'no-store' })).text())
  return (await Promise.all(texts)).join()
}

export async function reloadOnChange(): Promise<void> {
  const first = await readBuild()
  setInterval(() => {
    void readBuild()
      .then((now) => {
        if (now !== first) location.reload()
      })
      // The gateway starts again.
      .catch(() => undefined)
  }, LOOK_MS)
}
