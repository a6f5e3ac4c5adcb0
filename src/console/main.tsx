/**
 * The owner's console in the browser. It speaks to the gateway by the published client and the stream of events alone,
 * and may import nothing else of ours. Pages beyond the first are loaded when they are first opened.
 */
import { render } from 'preact'
import { App } from './app.tsx'
import { toast } from './components/messages.tsx'
import { watchAccount } from './data/account.ts'
import { watchEntries } from './data/gateway.ts'
import { openStream } from './data/stream.ts'
import { formatMoment } from './words/time.ts'

/** True under `npm run dev`: the build replaces it. */
declare const IS_DEVELOPMENT: boolean

const root = document.getElementById('app')
if (root !== null) {
  root.replaceChildren()
  render(<App />, root)
  openStream()
  watchEntries()
  watchAccount((begunAt) =>
    toast(`This is the payment that you began ${formatMoment(begunAt)}. It was made once.`),
  )
  if (IS_DEVELOPMENT) void import('./data/reload.ts').then(({ reloadOnChange }) => reloadOnChange())
}
