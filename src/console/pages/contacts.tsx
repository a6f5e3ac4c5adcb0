/** Names for payees: a list, and dialogs to add, change and remove one. */
import { useState } from 'preact/hooks'
import type { Contact } from '../../client/operations.ts'
import { ActionButton, Dialog, DialogButtons, Field } from '../components/controls.tsx'
import { Empty, toast } from '../components/messages.tsx'
import { NotReady } from '../components/not-ready.tsx'
import { PageHead, Panel } from '../components/panel.tsx'
import { Untrusted } from '../components/quote.tsx'
import { bursar, withProof } from '../data/gateway.ts'
import { contacts, recipients } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { chooseHue, count, extractInitials, isAddress, nameChain, shortAddress } from '../words/names.ts'
import { formatDay } from '../words/time.ts'

type Editing = 'new' | Contact | null

export function ContactsPage() {
  const state = useResource(contacts)
  const [editing, edit] = useState<Editing>(null)
  const [removing, remove] = useState<Contact | null>(null)
  const all = loadedValue(state)?.contacts ?? []
  return (
    <>
      <PageHead
        title="Contacts"
        actions={
          <button class="btn btn--primary" type="button" onClick={() => edit('new')}>
            Add a contact
          </button>
        }
      >
        Names for those you pay. Your agents may pay them by name, and never change them.
      </PageHead>
      <NotReady state={state} subject="The list of contacts" retry={contacts.reload} />
      {state.status === 'ready' && all.length === 0 && (
        <Panel>
          <Empty icon="contacts" title="No contacts yet">
            Give an address a name, and you and your agents see the name wherever it is paid.
          </Empty>
        </Panel>
      )}
      {all.length > 0 && (
        <Panel>
          <ul class="rows">
            {all.map((contact) => (
              <ContactRow
                key={contact.id}
                contact={contact}
                edit={() => edit(contact)}
                remove={() => remove(contact)}
              />
            ))}
          </ul>
        </Panel>
      )}
      {editing !== null && (
        <EditDialog contact={editing === 'new' ? null : editing} close={() => edit(null)} />
      )}
      {removing !== null && <RemoveDialog contact={removing} close={() => remove(null)} />}
    </>
  )
}

function ContactRow({
  contact,
  edit,
  remove,
}: {
  readonly contact: Contact
  readonly edit: () => void
  readonly remove: () => void
}) {
  const { id, addresses, recipientId, paidBefore, addressChangedAt, createdAt } = contact
  const name = contact.name ?? ''
  const places = [
    ...addresses.map(
      ({ chain, address }) => `${shortAddress(address)}${chain === null ? '' : ` on ${nameChain(chain)}`}`,
    ),
    ...(recipientId === null ? [] : ['bank account']),
  ]
  const known = [
    paidBefore.count === 0 ? 'never paid' : `paid ${count(paidBefore.count, 'time')}`,
    addressChangedAt === null ? `added ${formatDay(createdAt)}` : `changed ${formatDay(addressChangedAt)}`,
  ]
  return (
    <li class="item">
      <span class={`glyph glyph--round glyph--${chooseHue(id)}`} aria-hidden="true">
        {extractInitials(name)}
      </span>
      <span class="item__main">
        <span class="item__name">
          <span class="trim">
            <Untrusted>{name}</Untrusted>
          </span>
        </span>
        <span class="item__sub wrap" title={addresses.map(({ address }) => address).join(' ')}>
          {places.length === 0 ? 'No address' : places.join(', ')} · {known.join(', ')}
        </span>
      </span>
      <span class="row">
        <button class="btn btn--sm" type="button" aria-label={`Change ${name}`} onClick={edit}>
          Change
        </button>
        <button
          class="btn btn--sm btn--stopline"
          type="button"
          aria-label={`Remove ${name}`}
          onClick={remove}
        >
          Remove
        </button>
      </span>
    </li>
  )
}

/** Asks for one address that is good on every chain. Those of single chains, which programs add, stay. */
function EditDialog({ contact, close }: { readonly contact: Contact | null; readonly close: () => void }) {
  const saved = loadedValue(useResource(recipients))?.recipients ?? []
  const general = contact?.addresses.find(({ chain }) => chain === null)?.address ?? ''
  const others = (contact?.addresses ?? []).filter(({ chain }) => chain !== null)
  const [name, setName] = useState(contact?.name ?? '')
  const [address, setAddress] = useState(general)
  const [recipientId, setRecipientId] = useState(contact?.recipientId ?? '')
  const [email, setEmail] = useState(contact?.email ?? '')
  const given = address.trim()
  const addressError =
    given === '' || isAddress(given)
      ? undefined
      : 'An address begins with 0x and has 40 more letters and digits.'
  const isMoved =
    contact !== null &&
    (given.toLowerCase() !== general.toLowerCase() || recipientId !== (contact.recipientId ?? ''))
  const save = async () => {
    const said = {
      name: name.trim(),
      addresses: [...others, ...(given === '' ? [] : [{ address: given }])],
      recipientId: recipientId === '' ? null : recipientId,
      email: email.trim() === '' ? null : email.trim(),
    }
    await withProof(() =>
      contact === null ? bursar.contacts.create(said) : bursar.contacts.update({ id: contact.id, ...said }),
    )
    await contacts.reload()
    close()
    toast(contact === null ? 'The contact is added.' : 'The contact is changed.')
  }
  return (
    <Dialog title={contact === null ? 'New contact' : 'Change the contact'} close={close}>
      <Field label="Name" of="name">
        {(props) => (
          <input
            class="input"
            maxLength={80}
            autofocus
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      <Field
        label="Address"
        of="addresses"
        error={addressError}
        hint={
          others.length === 0
            ? 'Leave it empty for a payee with a bank account only.'
            : `For every chain but ${others.map(({ chain }) => nameChain(chain ?? '')).join(', ')}.`
        }
      >
        {(props) => (
          <input
            class="input mono"
            placeholder="0x…"
            autoComplete="off"
            spellcheck={false}
            value={address}
            onInput={(event) => setAddress(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      {(saved.length > 0 || recipientId !== '') && (
        <Field label="Bank account (optional)" of="recipientId">
          {(props) => (
            <select
              class="input"
              value={recipientId}
              onChange={(event) => setRecipientId(event.currentTarget.value)}
              {...props}
            >
              <option value="">None</option>
              {saved.map(({ id, name: holder, currency, last4 }) => (
                <option key={id} value={id}>
                  {holder ?? 'Erased'}, {currency} •• {last4}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      <Field label="E-mail (optional)" of="email" hint="For you only. Agents do not see it.">
        {(props) => (
          <input
            class="input"
            type="email"
            autoComplete="off"
            value={email}
            onInput={(event) => setEmail(event.currentTarget.value)}
            {...props}
          />
        )}
      </Field>
      {isMoved && (
        <p class="small soft">
          Requests and schedules that named this contact before are refused: they pay what they showed, or
          nobody. It counts as a new payee again.
        </p>
      )}
      <DialogButtons close={close}>
        <ActionButton
          kind="primary"
          run={save}
          busy="Saving"
          disabled={name.trim() === '' || addressError !== undefined}
        >
          {contact === null ? 'Add' : 'Save'}
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}

function RemoveDialog({ contact, close }: { readonly contact: Contact; readonly close: () => void }) {
  const remove = async () => {
    await withProof(() => bursar.contacts.remove({ id: contact.id }))
    await contacts.reload()
    close()
    toast('The contact is removed.')
  }
  return (
    <Dialog
      title={
        <>
          Remove <Untrusted>{contact.name ?? ''}</Untrusted>?
        </>
      }
      close={close}
    >
      <p>
        Requests and schedules that named this contact are refused. Policies that name it neither allow nor
        deny anybody by it. Payments stay.
      </p>
      <DialogButtons close={close}>
        <ActionButton kind="stop" run={remove} busy="Removing">
          Remove
        </ActionButton>
      </DialogButtons>
    </Dialog>
  )
}
