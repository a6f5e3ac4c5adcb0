/** Page of an address without one, for browsers. Programs receive the problem. */
import { Shell } from './shell.tsx'

export function NotFoundPage() {
  return (
    <Shell title="Not found">
      <h1 tabindex={-1}>There is no such page</h1>
      <p>The address may be mistyped, or what it showed was removed.</p>
      <p>
        <a href="/">Go to your account</a> or read the <a href="/docs">documentation</a>.
      </p>
    </Shell>
  )
}
