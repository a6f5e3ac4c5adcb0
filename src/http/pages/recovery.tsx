/** The way back into an account that is locked or in the wrong hands. */
import { CodeField, DestinationFields } from './code-fields.tsx'
import type { Offer } from './ways-in.tsx'

/** By a code, where codes can be sent, or by a passkey alone. @param isOpen for whoever comes with a locked account. */
export function RecoveryForms({
  channels,
  isSandbox,
  isOpen,
}: Pick<Offer, 'channels' | 'isSandbox'> & { readonly isOpen: boolean }) {
  return (
    <details id="recovery" open={isOpen}>
      <summary>Locked out?</summary>
      <p class="hint">Getting an account back unlocks it and ends all its sessions.</p>
      {channels.length > 0 && (
        <>
          <form id="recovery-start" method="post">
            <DestinationFields channels={channels} id="recovery-destination" whose="Your account’s" />
            <button type="submit">Send a recovery code</button>
          </form>
          <form id="recovery-complete" method="post" hidden>
            <CodeField id="recovery-code" label="Code of the message" isSandbox={isSandbox} />
            <button type="submit">Recover with the code</button>
          </form>
          <p class="hint">For an account that has no address, only passkeys:</p>
        </>
      )}
      <form id="recovery-passkey" method="post">
        <button type="submit">Recover with a passkey</button>
      </form>
    </details>
  )
}
