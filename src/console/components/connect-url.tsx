/** Connecting an app that takes a URL: the gateway's address, and where to paste it. No terminal is needed. */
import type { ComponentChildren } from 'preact'
import { deployment } from '../data/account.ts'
import { findReach, type Reach } from '../words/reach.ts'
import { Copy } from './controls.tsx'
import { Banner } from './messages.tsx'
import { QrCode } from './qr-code.tsx'

export function ConnectUrl() {
  const url = `${deployment.origin}/mcp`
  return (
    <>
      <ReachNote reach={findReach(deployment.origin)} />
      <div class="address-to-paste">
        <div class="stack stack--tight">
          <h3>1. Copy this address</h3>
          <Copy text={url} what="the address" />
          <p class="soft small">
            It is no secret: it opens a page that only you can answer. Scan it to have it on a phone.
          </p>
        </div>
        <QrCode text={url} label={`Code to scan: ${url}`} />
      </div>
      <div class="stack stack--tight">
        <h3>2. Paste it in the settings of the app</h3>
        <div class="cols cols--even">
          <Place
            title="Claude: Settings → Connectors → Add custom connector"
            picture={
              <Picture
                app="Claude"
                menu="Connectors"
                dialog="Add custom connector"
                field="Remote MCP server URL"
                button="Add"
                url={url}
              />
            }
          >
            Some versions have Connectors under Customize, behind a plus sign. Press <b>Add</b>, then{' '}
            <b>Connect</b> beside Bursar.
          </Place>
          <Place
            title="ChatGPT: Settings → Apps → Create app"
            picture={
              <Picture
                app="ChatGPT"
                menu="Apps"
                dialog="New app"
                field="MCP Server URL"
                button="Create"
                url={url}
              />
            }
          >
            Developer mode must be on, under <b>Advanced settings</b> there. Some versions call it Settings →
            Connectors → Create. Choose <b>OAuth</b>, then press <b>Create</b>.
          </Place>
        </div>
        <p class="soft small">
          Any other app: look for the place that takes the URL of an MCP server. Menus of other companies
          change; the address stays.
        </p>
      </div>
      <div class="stack stack--tight">
        <h3>3. Say yes on the page that opens</h3>
        <p class="soft small">
          Open it in this browser: what you have just chosen is filled in there. This page shows what the
          agent really got.
        </p>
      </div>
    </>
  )
}

const notes: Readonly<Record<Exclude<Reach, 'anywhere'>, string>> = {
  own: 'This gateway is at an address of this computer. Apps that run on this computer reach it; apps in the cloud, such as Claude and ChatGPT, do not.',
  near: 'This gateway is at an address of your own network. Apps that run there reach it; apps in the cloud, such as Claude and ChatGPT, do not.',
  plain:
    'This gateway is served without encryption. Apps in the cloud, such as Claude and ChatGPT, connect to https addresses only.',
}

function ReachNote({ reach }: { readonly reach: Reach }) {
  if (reach === 'anywhere') return null
  return (
    <Banner kind="warn" icon="warning">
      {notes[reach]} For those, whoever runs the gateway gives it a public https address (the setting{' '}
      <code>PUBLIC_ORIGIN</code>); then open this page there.
    </Banner>
  )
}

function Place({
  title,
  picture,
  children,
}: {
  readonly title: string
  readonly picture: ComponentChildren
  readonly children: ComponentChildren
}) {
  return (
    <figure class="place">
      {picture}
      <figcaption class="stack stack--tight">
        <b>{title}</b>
        <span class="soft small">{children}</span>
      </figcaption>
    </figure>
  )
}

/** Longest address that fits into the drawn field. */
const FIELD_CHARACTERS = 32

/** A dialog of settings, drawn: the place in the menu, and the field for the address. */
function Picture({
  app,
  menu,
  dialog,
  field,
  button,
  url,
}: {
  readonly app: string
  readonly menu: string
  readonly dialog: string
  readonly field: string
  readonly button: string
  readonly url: string
}) {
  const shown = url.length > FIELD_CHARACTERS ? `${url.slice(0, FIELD_CHARACTERS - 1)}…` : url
  return (
    <svg
      class="picture"
      viewBox="0 0 320 176"
      role="img"
      aria-label={`The settings of ${app}: under ${menu}, in “${dialog}”, the address stands in the field “${field}”, above the button “${button}”.`}
    >
      <rect class="picture__window" x="0.5" y="0.5" width="319" height="175" rx="8" />
      <text class="picture__title" x="14" y="21">
        Settings
      </text>
      <rect class="picture__word" x="14" y="37" width="48" height="6" rx="3" />
      <rect class="picture__word" x="14" y="57" width="58" height="6" rx="3" />
      <rect class="picture__chosen" x="6" y="72" width="86" height="22" rx="5" />
      <text class="picture__menu" x="14" y="87">
        {menu}
      </text>
      <rect class="picture__word" x="14" y="103" width="42" height="6" rx="3" />
      <rect class="picture__word" x="14" y="123" width="54" height="6" rx="3" />
      <rect class="picture__dialog" x="100.5" y="12.5" width="208" height="151" rx="8" />
      <text class="picture__title" x="112" y="32">
        {dialog}
      </text>
      <text class="picture__label" x="112" y="52">
        Name
      </text>
      <rect class="picture__field" x="112.5" y="57.5" width="184" height="20" rx="4" />
      <text class="picture__text" x="119" y="71">
        Bursar
      </text>
      <text class="picture__label" x="112" y="94">
        {field}
      </text>
      <rect class="picture__field picture__field--here" x="112.5" y="99.5" width="184" height="20" rx="4" />
      <text class="picture__text" x="119" y="113">
        {shown}
      </text>
      <rect class="picture__button" x="244" y="132" width="52" height="21" rx="5" />
      <text class="picture__press" x="270" y="146" text-anchor="middle">
        {button}
      </text>
    </svg>
  )
}
