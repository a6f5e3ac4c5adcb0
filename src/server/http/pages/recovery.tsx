/** Recovery forms for a locked or compromised account. */
import { CodeField, DestinationFields } from './code-fields.tsx'
import type { Offer } from './sign-in-methods.tsx'

/**
 * Offers recovery by code, if the deployment can send codes, and by passkey. @param isOpen expands the section when
 * the account is locked.
 */
export function RecoveryForms({
  channels,
  isSandbox,
  isOpen,
}: Pick<Offer, 'channels' | 'isSandbox'> & { readonly isOpen: boolean }) {
  return (
    <details id="recovery" open={isOpen}>
      <summary>Locked out?</summary>
      <p class="hint">Recovery unlocks the account and signs out all its sessions.</p>
      {channels.length > 0 && (
        <>
          <form id="recovery-start" method="post">
            <DestinationFields channels={channels} id="recovery-destination" whose="Your account’s" />
            <button type="submit">Send a recovery code</button>
          </form>
          <form id="recovery-complete" method="post" hidden>
            <CodeField id="recovery-code" label="Code from the message" isSandbox={isSandbox} />
            <button type="submit">Recover with the code</button>
          </form>
          <p class="hint">For an account without an address:</p>
        </>
      )}
      <form id="recovery-passkey" method="post">
        <button type="submit">Recover with a passkey</button>
      </form>
    </details>
  )
}
